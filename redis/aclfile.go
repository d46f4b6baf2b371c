package redis

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/rondo-go/rondo/redis/acl"
	"github.com/rondo-go/rondo/redis/conf"
)

// A User is a user of a Server, as the directive user of redis.conf defines it: a name, and
// rules as ACL SETUSER takes them. A user named "default" gets its rules instead of
// those it has otherwise.
type User struct {
	Name  string
	Rules []string
}

// ParseUser returns the User of a line such as "alice on >secret ~app:* +@read". Blanks
// separate the parts, so a password must not have any. Listen checks the rules.
func ParseUser(line string) (User, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return User{}, errors.New("redis: ParseUser: the line is empty: want a name and rules")
	}
	return User{words[0], words[1:]}, nil
}

// initUsers makes the default user.
func (s *Server) initUsers() {
	s.users = acl.NewUsers(s.commands.rules)
	applyACL(s)
	s.users.SetPassword(s.config.password)
}

// defineUsers makes the users that the program or its configuration asks for.
func (s *Server) defineUsers() error {
	users := s.Users
	if s.Config != nil {
		users = s.Config.users
	}
	switch {
	case len(users) > 0 && s.config.aclFile != "":
		return errors.New("redis: Server.Users and Server.ACLFile are both set: want users either from the program or from a file")
	case s.Password != "" && s.config.aclFile != "":
		return errors.New("redis: Server.Password and Server.ACLFile are both set: the file decides which password the default user has, as in the line 'user default on >secret ~* &* +@all'")
	}
	for _, u := range users {
		if err := s.users.Define(u.Name, u.Rules); err != nil {
			return fmt.Errorf("redis: Server.Users: %w", err)
		}
		if !s.users.Find([]byte(u.Name)).Enabled() {
			s.log().Info("user is disabled: its rules have no 'on'", "user", u.Name)
		}
	}
	if s.config.aclFile == "" {
		s.noteOutside()
		return nil
	}
	if err := s.loadUsers(); err != nil {
		return fmt.Errorf("redis: Server.ACLFile: %w", err)
	}
	if s.config.password != "" {
		s.log().Warn("requirepass has no effect: the file of users decides which password the default user has",
			"file", s.config.aclFile, "open", s.users.Default.Open())
	}
	return nil
}

// noteOutside keeps what users are like that CONFIG REWRITE cannot write, since their lines are
// not in its file: a second one would keep the server from starting again.
func (s *Server) noteOutside() {
	if s.Config == nil || len(s.Config.outside) == 0 {
		return
	}
	s.outside = make(map[string]string)
	for name := range s.Config.outside {
		s.outside[name] = s.users.Find([]byte(name)).Line()
	}
}

// applyACL puts the parameters of users into effect.
func applyACL(s *Server) {
	s.users.AllChannels = s.config.allChannels
	s.denials.Max = int(min(s.config.deniedLen, math.MaxInt32))
}

// loadUsers replaces the users by those of the file, all or none.
func (s *Server) loadUsers() error {
	name := s.config.aclFile
	text, err := os.ReadFile(name)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return acl.RuleError(fmt.Sprintf("Error loading ACLs, opening file '%s': %v", name, err))
	}
	return s.users.Load(name, string(text))
}

// saveUsers writes the users to the file. If it fails, the file stays as it was. A new one only
// its owner may read: the sums of passwords are worth guessing.
func (s *Server) saveUsers() error { return replaceFile(s.config.aclFile, s.users.Format(), 0o600) }

const errNoUsersFile = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration."

func aclLoadCommand(c *client, _ [][]byte) {
	s := c.server
	if s.config.aclFile == "" {
		c.fail(errNoUsersFile)
		return
	}
	if err := s.loadUsers(); err != nil {
		c.fail("ERR " + err.Error())
		return
	}
	c.disconnect(func(x *client) bool { return x.user != program && (x.user != s.users.Default || x.hearsTooMuch()) })
	c.ok()
}

func aclSaveCommand(c *client, _ [][]byte) {
	s := c.server
	if s.config.aclFile == "" {
		c.fail(errNoUsersFile)
		return
	}
	if err := s.saveUsers(); err != nil {
		s.log().Warn("ACL SAVE failed", slog.String("file", s.config.aclFile), slog.Any("error", err))
		c.fail("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
		return
	}
	c.ok()
}

// userOption returns the users as lines of redis.conf: none if they have a file, and only those whose lines
// do not stand elsewhere. If one of the others has changed, that cannot be written.
func (s *Server) userOption() (o conf.Option, err error) {
	o.Name = "user"
	if s.config.aclFile != "" {
		return o, nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.outside)) {
		if u := s.users.Find([]byte(name)); u == nil || u.Line() != s.outside[name] {
			return o, fmt.Errorf("user '%s' has changed, and its line is in an included file or on the command line: change it there, or put all users into an aclfile", name)
		}
	}
	for _, u := range s.users.Sorted() {
		if _, stands := s.outside[u.Name()]; !stands {
			o.Lines = append(o.Lines, conf.Line{Text: confLine(u.Line()), Force: true})
		}
	}
	return o, nil
}

// confLine puts quotes around the words for which a line of redis.conf needs them.
func confLine(line string) string {
	words := strings.Split(line, " ")
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, `"'`) {
			words[i] = string(conf.Quote(w))
		}
	}
	return strings.Join(words, " ")
}

func setPubsubDefault(c *config, v string) string {
	switch strings.ToLower(v) {
	case "allchannels":
		c.allChannels = true
	case "resetchannels":
		c.allChannels = false
	default:
		return "argument(s) must be one of the following: allchannels, resetchannels"
	}
	return ""
}

func getPubsubDefault(c *config) string {
	if c.allChannels {
		return "allchannels"
	}
	return "resetchannels"
}
