package api

// AnsweredStatus repeats the annotations by which people ask for something
// once, as soon as the answer is there: it was done, refused, or tried in vain.
// Which of them it was, the conditions tell. Whoever asks can wait for the
// value here, and then for Ready.
type AnsweredStatus struct {
	RollbackTo           string `json:"rollbackTo,omitempty"`
	ReconcileRequestedAt string `json:"reconcileRequestedAt,omitempty"`
	Force                string `json:"force,omitempty"`
	Test                 string `json:"test,omitempty"`
}
