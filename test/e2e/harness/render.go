package harness

// Render runs the operator's binary as a person's tool, on a file from standard
// input, and returns what it printed. No cluster is asked.
func (e *Env) Render(file string, args ...string) string {
	e.t.Helper()
	output, err := command{
		path: shared.operator, stdin: file,
		args: append([]string{"render", "-", "--validate", "--namespace", e.Namespace}, args...),
		env:  []string{"KUBECONFIG=/dev/null", "HOME=" + e.t.TempDir()},
	}.run(e.t.Context())
	e.must(err)
	return output
}
