package helm

// redact takes out of a text what nobody may read in it, see Request.Redact.
type redact func(string) string

func (hide redact) text(said string) string {
	if hide == nil {
		return said
	}
	return hide(said)
}

// error returns an error that says the same, less what is secret, and is
// whatever the other is.
func (hide redact) error(err error) error {
	if said := hide.text(err.Error()); said != err.Error() {
		return redactedError{error: err, said: said}
	}
	return err
}

type redactedError struct {
	error
	said string
}

func (e redactedError) Error() string { return e.said }

func (e redactedError) Unwrap() error { return e.error }
