package harness

// Render runs "chartwright render --validate" with the content of a file on
// standard input, and returns its output. It does not use the cluster.
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
