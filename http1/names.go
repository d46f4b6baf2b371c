package http1

import "strings"

// knownNames are field names that need no memory in a Header: those that browsers, proxies
// and programs send, in net/http's spelling.
var knownNames = [...]string{
	"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Accept-Ranges",
	"Access-Control-Request-Headers", "Access-Control-Request-Method", "Age", "Allow", "Alt-Svc",
	"Authorization", "Cache-Control", "Connection", "Content-Disposition", "Content-Encoding",
	"Content-Language", "Content-Length", "Content-Location", "Content-Range",
	"Content-Security-Policy", "Content-Type", "Cookie", "Date", "Dnt", "Etag", "Expect",
	"Expires", "Forwarded", "From", "Grpc-Timeout", "Host", "If-Match", "If-Modified-Since",
	"If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive", "Last-Modified", "Link",
	"Location", "Max-Forwards", "Origin", "Pragma", "Priority", "Proxy-Authorization",
	"Proxy-Connection", "Range", "Referer", "Retry-After", "Save-Data", "Sec-Ch-Ua",
	"Sec-Ch-Ua-Mobile", "Sec-Ch-Ua-Platform", "Sec-Fetch-Dest", "Sec-Fetch-Mode",
	"Sec-Fetch-Site", "Sec-Fetch-User", "Sec-Gpc", "Sec-Websocket-Accept",
	"Sec-Websocket-Extensions", "Sec-Websocket-Key", "Sec-Websocket-Protocol",
	"Sec-Websocket-Version", "Server", "Set-Cookie", "Strict-Transport-Security", "Te",
	"Traceparent", "Tracestate", "Trailer", "Transfer-Encoding", "Upgrade",
	"Upgrade-Insecure-Requests", "User-Agent", "Vary", "Via", "Www-Authenticate",
	"X-Api-Key", "X-Content-Type-Options", "X-Correlation-Id", "X-Csrf-Token", "X-Forwarded-For",
	"X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Frame-Options",
	"X-Powered-By", "X-Real-Ip", "X-Request-Id", "X-Requested-With",
}

// names is a hash table of knownNames; collisions go to the next free place.
var names = func() (t [512]string) {
	for _, name := range knownNames {
		i := nameHash([]byte(name))
		for t[i] != "" {
			i = (i + 1) % len(t)
		}
		t[i] = name
	}
	return t
}()

// nameHash is the same for all spellings of a name.
func nameHash(b []byte) int {
	first, middle, last := b[0]|0x20, b[len(b)/2]|0x20, b[len(b)-1]|0x20
	return int(uint(len(b))*37+uint(first)*7+uint(middle)*59+uint(last)*113) % 512
}

// knownName returns a field's name in net/http's spelling without allocating; "" if it is
// not a known one.
func knownName(b []byte) string {
	for i := nameHash(b); ; i = (i + 1) % len(names) {
		name := names[i]
		if name == "" || string(b) == name || len(b) == len(name) && isWordLike(b, name) {
			return name
		}
	}
}

// isWordLike compares b with a known name, which consists of letters, digits and hyphens.
func isWordLike(b []byte, name string) bool {
	for i, c := range b {
		if c|0x20 != name[i]|0x20 {
			return false
		}
	}
	return true
}

// writeName writes a name in net/http's spelling: capitals at the start and behind each
// hyphen, small letters elsewhere.
func writeName(b *strings.Builder, name []byte) {
	upper := true
	for _, c := range name {
		if upper && 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		} else if !upper {
			c = lower(c)
		}
		b.WriteByte(c)
		upper = c == '-'
	}
}

// methodName returns a method; those that clients send most need no memory.
func methodName(b []byte) string {
	switch string(b) {
	case "GET":
		return "GET"
	case "POST":
		return "POST"
	case "HEAD":
		return "HEAD"
	case "PUT":
		return "PUT"
	case "DELETE":
		return "DELETE"
	case "PATCH":
		return "PATCH"
	case "OPTIONS":
		return "OPTIONS"
	case "CONNECT":
		return "CONNECT"
	}
	return string(b)
}
