package helm

// interruptedError is what Helm made of the error of a hook, and that error.
type interruptedError struct {
	error
	hook error
}

func (e interruptedError) Unwrap() []error { return []error{e.error, e.hook} }
