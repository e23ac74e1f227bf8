package etcd

// StopAt makes the n-th next step of that name fail with the error, as if the
// process had ended there. It returns a channel that is closed then.
func (c *Config) StopAt(name string, n int, err error) <-chan struct{} {
	stopped := make(chan struct{})
	c.step = func(step string) error {
		if step != name {
			return nil
		}
		if n--; n != 0 {
			return nil
		}
		close(stopped)
		return err
	}
	return stopped
}

// Steps calls f at each step.
func (c *Config) Steps(f func(name string)) {
	c.step = func(name string) error { f(name); return nil }
}

// Seal makes a value that isthmus may have written.
func Seal(payload []byte) string { return string(seal(payload)) }

// Payload opens it.
func Payload(value []byte) ([]byte, error) { return payload(value) }

// FailAt has each step of that name fail with the error that f gives, if any.
func (c *Config) FailAt(name string, f func() error) {
	c.step = func(step string) error {
		if step != name {
			return nil
		}
		return f()
	}
}
