package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hibiken/asynq"
)

// check is what the checks of asynq's features share.
type check struct {
	server    asynq.RedisConnOpt
	client    *asynq.Client
	inspector *asynq.Inspector
}

func features(server asynq.RedisConnOpt) error {
	c := &check{server: server, client: asynq.NewClient(server), inspector: asynq.NewInspector(server)}
	defer c.client.Close()
	defer c.inspector.Close()
	var names []string
	for _, one := range []struct {
		name string
		run  func() error
	}{
		{"results", c.results}, {"retries", c.retries}, {"archive", c.archive}, {"delays", c.delays},
		{"unique", c.unique}, {"cancelled", c.cancelled}, {"groups", c.groups}, {"periodic", c.periodic},
		{"paused", c.paused}, {"servers", c.servers},
	} {
		if err := one.run(); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		names = append(names, one.name)
	}
	fmt.Println(strings.Join(names, ", "))
	return nil
}

// add enqueues a task that is kept when it is completed.
func (c *check) add(kind string, payload []byte, options ...asynq.Option) (*asynq.TaskInfo, error) {
	return c.client.Enqueue(asynq.NewTask(kind, payload), append(options, asynq.Retention(time.Hour))...)
}

// reaches waits until a task is in a state.
func (c *check) reaches(t *asynq.TaskInfo, state asynq.TaskState) (*asynq.TaskInfo, error) {
	err := eventually(fmt.Sprintf("task %s %s", t.Type, state), func() (bool, error) {
		now, err := c.inspector.GetTaskInfo(t.Queue, t.ID)
		if err == nil {
			t = now
		}
		return err == nil && now.State == state, err
	})
	return t, err
}

// done adds a task, and wants it completed with a result.
func (c *check) done(kind string, payload []byte, options ...asynq.Option) (*asynq.TaskInfo, error) {
	t, err := c.add(kind, payload, options...)
	if err != nil {
		return nil, err
	}
	if t, err = c.reaches(t, asynq.TaskStateCompleted); err != nil {
		return nil, err
	}
	if !bytes.Equal(t.Result, payload) {
		return nil, fmt.Errorf("the result has %d bytes, want the payload's %d", len(t.Result), len(payload))
	}
	return t, nil
}

func (c *check) results() error {
	for _, size := range []int{1, 1000, 1_000_000} {
		if _, err := c.done("echo", bytes.Repeat([]byte("\x00\r\n\xff"), size)); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) retries() error {
	t, err := c.done("flaky", []byte("x"), asynq.MaxRetry(5))
	if err != nil {
		return err
	}
	if t.Retried != 2 || t.LastErr != "try 1 fails" {
		return fmt.Errorf("retried %d times, last error %q", t.Retried, t.LastErr)
	}
	return nil
}

func (c *check) archive() error {
	fails, err := c.add("fails", nil, asynq.MaxRetry(1))
	if err != nil {
		return err
	}
	if fails, err = c.reaches(fails, asynq.TaskStateArchived); err != nil {
		return err
	}
	if fails.Retried != 1 || fails.LastErr != "it always fails" {
		return fmt.Errorf("retried %d times, last error %q", fails.Retried, fails.LastErr)
	}
	hopeless, err := c.add("hopeless", nil, asynq.MaxRetry(10))
	if err != nil {
		return err
	}
	if hopeless, err = c.reaches(hopeless, asynq.TaskStateArchived); err != nil {
		return err
	}
	before := hopeless.LastFailedAt
	time.Sleep(time.Second) // times have whole seconds
	if err := c.inspector.RunTask("default", hopeless.ID); err != nil {
		return err
	}
	if err := eventually("another failure", func() (bool, error) {
		hopeless, err = c.reaches(hopeless, asynq.TaskStateArchived)
		return err == nil && hopeless.LastFailedAt.After(before), err
	}); err != nil {
		return err
	}
	if n, err := c.inspector.DeleteAllArchivedTasks("default"); err != nil || n != 2 {
		return fmt.Errorf("deleted %d archived tasks: %v", n, err)
	}
	return nil
}

func (c *check) delays() error {
	at := time.Now().Add(1500 * time.Millisecond)
	t, err := c.add("echo", []byte("later"), asynq.ProcessAt(at))
	if err != nil {
		return err
	}
	if t.State != asynq.TaskStateScheduled {
		return fmt.Errorf("a task for later is %s", t.State)
	}
	if t, err = c.reaches(t, asynq.TaskStateCompleted); err != nil {
		return err
	}
	if t.CompletedAt.Before(at.Truncate(time.Second)) {
		return fmt.Errorf("completed at %s, before %s", t.CompletedAt, at)
	}
	far, err := c.add("echo", []byte("far"), asynq.ProcessIn(time.Hour))
	if err != nil {
		return err
	}
	if err := c.inspector.RunTask("default", far.ID); err != nil {
		return err
	}
	_, err = c.reaches(far, asynq.TaskStateCompleted)
	return err
}

func (c *check) unique() error {
	first, err := c.add("echo", []byte("u"), asynq.Unique(time.Hour), asynq.ProcessIn(time.Hour))
	if err != nil {
		return err
	}
	if _, err := c.add("echo", []byte("u"), asynq.Unique(time.Hour)); !errors.Is(err, asynq.ErrDuplicateTask) {
		return fmt.Errorf("the same task again: %v", err)
	}
	if _, err := c.add("echo", nil, asynq.TaskID(first.ID)); !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("the same ID again: %v", err)
	}
	if err := c.inspector.DeleteTask("default", first.ID); err != nil {
		return err
	}
	_, err = c.done("echo", []byte("u"), asynq.Unique(time.Hour))
	return err
}

// cancelled ends tasks by a message to their workers, and by their time limit.
func (c *check) cancelled() error {
	slow, err := c.add("slow", nil, asynq.MaxRetry(0))
	if err != nil {
		return err
	}
	if slow, err = c.reaches(slow, asynq.TaskStateActive); err != nil {
		return err
	}
	// A worker may not know yet that it has the task.
	if err := eventually("a cancelled task", func() (bool, error) {
		if err := c.inspector.CancelProcessing(slow.ID); err != nil {
			return false, err
		}
		slow, err = c.inspector.GetTaskInfo("default", slow.ID)
		return err == nil && slow.State == asynq.TaskStateArchived, err
	}); err != nil {
		return err
	}
	if slow.LastErr != "context canceled" {
		return fmt.Errorf("last error %q", slow.LastErr)
	}
	limited, err := c.add("slow", nil, asynq.MaxRetry(0), asynq.Timeout(time.Second))
	if err != nil {
		return err
	}
	if limited, err = c.reaches(limited, asynq.TaskStateArchived); err != nil {
		return err
	}
	if limited.LastErr != "context deadline exceeded" {
		return fmt.Errorf("last error %q", limited.LastErr)
	}
	return nil
}

// completed counts tasks that begin with a text and are done.
func (c *check) completed(queue, prefix string) (n int, letters int, err error) {
	tasks, err := c.inspector.ListCompletedTasks(queue, asynq.PageSize(1000))
	for _, t := range tasks {
		if rest, ok := strings.CutPrefix(string(t.Payload), prefix); ok {
			n++
			letters += len(rest)
		}
	}
	return n, letters, err
}

// groups has workers join 12 tasks, at most 5 in one.
func (c *check) groups() error {
	for range 12 {
		if _, err := c.add("echo", []byte("x"), asynq.Group("g"), asynq.Queue("low")); err != nil {
			return err
		}
	}
	return eventually("three joined tasks", func() (bool, error) {
		n, letters, err := c.completed("low", "g:")
		if n > 0 && letters == 12 && n < 3 {
			return false, fmt.Errorf("%d joined tasks", n)
		}
		return letters == 12, err
	})
}

func (c *check) periodic() error {
	scheduler := asynq.NewScheduler(c.server, &asynq.SchedulerOpts{LogLevel: asynq.WarnLevel})
	if _, err := scheduler.Register("@every 1s", asynq.NewTask("echo", []byte("tick")), asynq.Retention(time.Hour)); err != nil {
		return err
	}
	if err := scheduler.Start(); err != nil {
		return err
	}
	defer scheduler.Shutdown()
	return eventually("three ticks", func() (bool, error) {
		if _, err := c.inspector.SchedulerEntries(); err != nil {
			return false, err
		}
		n, _, err := c.completed("default", "tick")
		return n >= 3, err
	})
}

func (c *check) paused() error {
	if err := c.inspector.PauseQueue("low"); err != nil {
		return err
	}
	t, err := c.add("echo", []byte("paused"), asynq.Queue("low"))
	if err != nil {
		return err
	}
	if q, err := c.inspector.GetQueueInfo("low"); err != nil || !q.Paused || q.Pending != 1 {
		return fmt.Errorf("a paused queue: %+v, %v", q, err)
	}
	if err := c.inspector.UnpauseQueue("low"); err != nil {
		return err
	}
	_, err = c.reaches(t, asynq.TaskStateCompleted)
	return err
}

func (c *check) servers() error {
	return eventually("two servers and their queues", func() (bool, error) {
		servers, err := c.inspector.Servers()
		if err != nil {
			return false, err
		}
		queues, err := c.inspector.Queues()
		return len(servers) == 2 && len(queues) == 2, err
	})
}
