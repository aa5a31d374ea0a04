package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestNamed(t *testing.T) {
	for path, want := range map[string]bool{
		"/usr/local/bin/kubectl-chartwright": true,
		"kubectl-chartwright.exe":            true,
		"./kubectl_complete-chartwright":     true,
		"/chartwright":                       false,
		"kubectl":                            false,
		"kubectl-chart":                      false,
		"/kubectl-chartwright/chartwright":   false,
	} {
		if Named(path) != want {
			t.Errorf("%s is the plugin: %v", path, !want)
		}
	}
}

// TestHelp: every verb says what it does, by the name that people call it, with
// an example, and completes what it takes.
func TestHelp(t *testing.T) {
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		if !strings.HasPrefix(cmd.CommandPath(), "kubectl chartwright") || cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s: %q, %q", cmd.CommandPath(), cmd.Short, cmd.Long)
		}
		if cmd.Runnable() && (cmd.Example == "" || cmd.ValidArgsFunction == nil) {
			t.Errorf("%s has no example, or completes nothing", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long) {
			if len(line) > 82 {
				t.Errorf("%s: a line of %d characters: %s", cmd.CommandPath(), len(line), line)
			}
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	root := newRoot(genericiooptions.NewTestIOStreamsDiscard())
	if len(root.Commands()) < 9 {
		t.Errorf("there are %d verbs", len(root.Commands()))
	}
	look(root)
}

// TestRunTells: errors on standard error, and by the exit code.
func TestRunTells(t *testing.T) {
	for _, test := range []struct {
		args string
		code int
		out  string
		err  string
	}{
		{"kubectl-chartwright --help", 0, "kubectl chartwright [command]", ""},
		{"/bin/kubectl-chartwright stop", 1, "", "Error: unknown command \"stop\" for \"kubectl chartwright\"\n"},
		{"kubectl-chartwright pause -o xml", 1, "", "expected table, json or yaml"},
		{"kubectl_complete-chartwright pau", 0, "pause\t", "Completion ended"},
	} {
		streams, _, out, errs := genericiooptions.NewTestIOStreams()
		if code := Run(t.Context(), strings.Fields(test.args), streams); code != test.code {
			t.Errorf("%s: exit code %d, want %d", test.args, code, test.code)
		}
		if !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), test.err) || test.err == "" && errs.Len() > 0 || test.out == "" && out.Len() > 0 {
			t.Errorf("%s: stdout %q, stderr %q", test.args, out, errs)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		args        string
		more        int
		words, rest []string
		err         string
	}{
		{"podset/web", 0, []string{"podset/web"}, nil, ""},
		{"podset web", 0, []string{"podset", "web"}, nil, ""},
		{"podset/web 2", 1, []string{"podset/web"}, []string{"2"}, ""},
		{"podset web 2", 1, []string{"podset", "web"}, []string{"2"}, ""},
		{"", 1, nil, nil, "expected a custom resource"},
		{"podset", 1, nil, nil, "expected a custom resource"},
		{"podset/web 2 3", 1, nil, nil, `"3" is one word too many`},
		{"podset web 2", 0, nil, nil, `"2" is one word too many`},
	} {
		words, rest, err := split(strings.Fields(test.args), test.more)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: %v, want %q", test.args, err, test.err)
			}
			continue
		}
		if err != nil || !cmp.Equal(words, test.words) || strings.Join(rest, " ") != strings.Join(test.rest, " ") {
			t.Errorf("%q: %q and %q, %v", test.args, words, rest, err)
		}
	}
}

func TestRollbackTo(t *testing.T) {
	for _, to := range []string{"1", "12", "previous"} {
		first, err := rollbackTo(to)
		if err != nil || !strings.HasPrefix(first, to+"@2") {
			t.Errorf("%s: %q, %v", to, first, err)
		}
	}
	for _, to := range []string{"0", "-1", "two", "", "none", "2@again", "latest"} {
		if value, err := rollbackTo(to); err == nil {
			t.Errorf("%q becomes %q", to, value)
		}
	}
}

func TestExplain(t *testing.T) {
	need := right{verb: "patch", resource: schema.GroupResource{Group: "app.example.com", Resource: "podsets"}, namespace: "shop", purpose: "to pause it"}
	refused := apierrors.NewForbidden(need.resource, "web", errors.New("no"))
	err := need.explain(refused)
	want := `you may not patch podsets.app.example.com in namespace shop, which you need to pause it. The rule that allows it: {apiGroups: ["app.example.com"], resources: ["podsets"], verbs: ["patch"]}`
	if err == nil || err.Error() != want || !lacking(fmt.Errorf("first: %w", err)) || !errors.Is(err, refused) || !lasting(err) {
		t.Errorf("it says %v", err)
	}
	need.namespace = ""
	if err := need.explain(refused); strings.Contains(err.Error(), "namespace") {
		t.Errorf("it says %v", err)
	}
	if err := need.explain(errors.New("no route")); lacking(err) || lasting(err) || err.Error() != "patch podsets.app.example.com: no route" {
		t.Errorf("it says %v", err)
	}
	if need.explain(nil) != nil {
		t.Error("nothing is an error")
	}
}

// TestLasting: what is tried again while somebody waits.
func TestLasting(t *testing.T) {
	resource := schema.GroupResource{Resource: "podsets"}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{errGone, true},
		{apierrors.NewUnauthorized("no"), true},
		{apierrors.NewNotFound(resource, "web"), true},
		{apierrors.NewTooManyRequests("later", 1), false},
		{apierrors.NewResourceExpired("old"), false},
		{apierrors.NewInternalError(errors.New("no")), false},
		{apierrors.NewServiceUnavailable("no"), false},
		{io.ErrUnexpectedEOF, false},
	} {
		if got := lasting(fmt.Errorf("watch: %w", test.err)); got != test.want {
			t.Errorf("%v lasts: %v", test.err, got)
		}
	}
}

func TestColors(t *testing.T) {
	terminal, err := os.Open("/dev/ptmx")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = terminal.Close() }()
	for _, test := range []struct {
		mode    colorMode
		w       io.Writer
		noColor string
		want    bool
	}{
		{colorAlways, &bytes.Buffer{}, "", true},
		{colorAlways, &bytes.Buffer{}, "1", true},
		{colorNever, terminal, "", false},
		{colorAuto, terminal, "", true},
		{colorAuto, terminal, "1", false},
		{colorAuto, &bytes.Buffer{}, "", false},
	} {
		if got := colored(test.mode, test.w, test.noColor); got != test.want {
			t.Errorf("%s: %v", test.mode, got)
		}
	}
	if got := (painter{true}).paint("web", red); got != "\x1b[31mweb\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := (painter{}).paint("web", red); got != "web" {
		t.Errorf("%q", got)
	}
}
