package plugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
)

// Names of the program: kubectl calls the one for a command, and the other for
// what may follow on a command line.
const (
	program   = "kubectl-chartwright"
	completer = "kubectl_complete-chartwright"
	// shown is the command line of users.
	shown = "kubectl chartwright"
)

// Named reports whether a program of that path is the plugin.
func Named(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, program) || strings.HasPrefix(name, completer)
}

// Run runs a whole command line, the program's name first, and returns the
// exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	streams.Out, streams.ErrOut = &terminalWriter{to: streams.Out}, &terminalWriter{to: streams.ErrOut}
	root := newRoot(streams)
	words := args[1:]
	if strings.HasPrefix(filepath.Base(args[0]), completer) {
		words = append([]string{cobra.ShellCompRequestCmd}, words...)
	}
	root.SetArgs(words)
	err := root.ExecuteContext(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(streams.ErrOut, "Error:", err)
	}
	return exitCode(err)
}

// Command returns the root command, for the reference of the CLI.
func Command(streams genericiooptions.IOStreams) *cobra.Command { return newRoot(streams) }

// Exit codes.
const (
	exitDone = iota
	// exitFailed: the command could not be carried out, or what was asked for
	// was refused or has failed.
	exitFailed
	// exitTimeout: what was asked for is still under way.
	exitTimeout
)

// timeoutError means that --wait timed out before there was a verdict.
type timeoutError struct{ message string }

func (e *timeoutError) Error() string { return e.message }

func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if _, late := errors.AsType[*timeoutError](err); late {
		return exitTimeout
	}
	return exitFailed
}

func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	s := &session{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), output: formatTable, color: colorAuto}
	root := &cobra.Command{
		Use:   program,
		Short: "Look at the releases of Chartwright, and steer them",
		Long: `Look at the custom resources of Chartwright and the Helm releases behind them,
and steer them: with your own rights, by annotations of the custom resource.

KIND/NAME is as kubectl takes it: podset/web, podsets.app.example.com web, and
short names. Flags of kubectl that say which cluster and who you are, such as
--user, --as and --server, work here, too.

Exit codes: 0 what was asked for is done; 1 it was refused, has failed or could
not be asked for; 2 it is not known yet, for the time of --wait was up.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: shown},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	s.addFlags(root)
	root.AddCommand(s.verbs()...)
	return root
}

// verbs returns all of them, in the order of the help.
func (s *session) verbs() []*cobra.Command {
	return []*cobra.Command{
		newStatus(s), newHistory(s), newDiff(s),
		newRollback(s), newResume(s), newPause(s), newUnpause(s), newReconcile(s), newRollout(s),
	}
}

// addFlags adds those that every verb has. Of kubectl's, help shows the few
// that are used by the day.
func (s *session) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	s.flags.AddFlags(flags)
	for _, name := range []string{
		"as", "as-group", "as-uid", "as-user-extra", "cache-dir", "certificate-authority", "client-certificate", "client-key", "cluster",
		"disable-compression", "insecure-skip-tls-verify", "proxy-url", "request-timeout", "server", "tls-server-name", "token", "user",
	} {
		if flag := flags.Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
	ChoiceFlag(root, &s.output, "output", "o", "how to print: table, json or yaml", formatTable, formatJSON, formatYAML)
	ChoiceFlag(root, &s.color, "color", "", "colors: auto, for a terminal and without NO_COLOR; always; never", colorAuto, colorAlways, colorNever)
	must(root.RegisterFlagCompletionFunc("namespace", s.completeNamespaces))
}

// must is for what can only fail where a flag's name is misspelled here.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// completeTarget completes KIND/NAME and KIND NAME.
func (s *session) completeTarget(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var words []string
	switch kind, _, slash := strings.Cut(typed, "/"); {
	case len(args) == 0 && slash:
		for _, name := range s.names(cmd, kind) {
			words = append(words, kind+"/"+name)
		}
	case len(args) == 0:
		words = s.kinds()
	case len(args) == 1 && !strings.Contains(args[0], "/"):
		words = s.names(cmd, args[0])
	}
	return starting(typed, words), cobra.ShellCompDirectiveNoFileComp
}

// completeKind completes a lone KIND.
func (s *session) completeKind(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return starting(typed, s.kinds()), cobra.ShellCompDirectiveNoFileComp
}

// kinds returns the kinds that may be ours. Discovery does not tell whose a
// kind is: they are those of groups that are nobody's of Kubernetes, and have a
// status. What cannot be found out is no help, and no error either.
func (s *session) kinds() []string {
	resources, err := s.resourcesFor("patch")
	if err != nil {
		return nil
	}
	var found []string
	for _, r := range resources {
		if strings.Contains(r.Group, ".") && !strings.HasSuffix(r.Group, ".k8s.io") {
			found = append(found, r.SingularName)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// resourcesFor returns the resources of the cluster that have a verb. A group
// that does not answer leaves the others.
func (s *session) resourcesFor(verb string) ([]metav1.APIResource, error) {
	client, err := s.flags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	if len(lists) > 0 {
		err = nil
	}
	var found []metav1.APIResource
	for _, list := range lists {
		gv, wrong := schema.ParseGroupVersion(list.GroupVersion)
		if wrong != nil {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, verb) && !strings.Contains(r.Name, "/") {
				r.Group, r.Version = gv.Group, gv.Version
				found = append(found, r)
			}
		}
	}
	return found, err
}

// completeNamespaces completes -n.
func (s *session) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if s.connect() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return starting(typed, names(cmd, s.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}))), cobra.ShellCompDirectiveNoFileComp
}

// names returns the names of the custom resources of a kind.
func (s *session) names(cmd *cobra.Command, kind string) []string {
	if s.connect() != nil {
		return nil
	}
	t, err := s.kind(kind, s.namespace)
	if err != nil {
		return nil
	}
	return names(cmd, t.client)
}

// names returns the names of the objects that can be listed.
func names(cmd *cobra.Command, client dynamic.ResourceInterface) []string {
	list, err := client.List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].GetName()
	}
	return names
}

// starting returns the words that start with the typed text.
func starting(typed string, words []string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, typed) })
}
