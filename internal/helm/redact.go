package helm

// redactError returns an error with the redacted text of err that wraps err.
func redactError(redact func(string) string, err error) error {
	if text := redact(err.Error()); text != err.Error() {
		return redactedError{error: err, text: text}
	}
	return err
}

type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }

func (e redactedError) Unwrap() error { return e.error }
