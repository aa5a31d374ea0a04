package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

const (
	// program is the file name under which kubectl finds the plugin, and completer
	// the one under which kubectl asks it for completions.
	program   = "kubectl-chartwright"
	completer = "kubectl_complete-chartwright"
	// commandLine is what users type.
	commandLine = "kubectl chartwright"
)

// Named reports whether a program with this path is the plugin.
func Named(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, program) || strings.HasPrefix(name, completer)
}

// Run runs a command line, which starts with the name of the program, and returns
// the exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	streams.Out, streams.ErrOut = &terminalWriter{to: streams.Out}, &terminalWriter{to: streams.ErrOut}
	root := Command(streams)
	words := args[1:]
	if strings.HasPrefix(filepath.Base(args[0]), completer) {
		words = append([]string{cobra.ShellCompRequestCmd}, words...)
	}
	root.SetArgs(words)
	err := root.ExecuteContext(ctx)
	if _, printed := errors.AsType[exitError](err); err != nil && !printed {
		_, _ = fmt.Fprintln(streams.ErrOut, "Error:", err)
	}
	return exitCode(err)
}

// Exit codes.
const (
	exitDone = iota
	// exitFailed: the command failed, or the request was refused or failed.
	exitFailed
	// exitPending: the outcome is not known yet.
	exitPending
)

// pendingError means that the outcome is not known yet: --wait timed out, or check
// found custom resources that are still progressing.
type pendingError struct{ message string }

func (e *pendingError) Error() string { return e.message }

func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	if _, pending := errors.AsType[*pendingError](err); pending {
		return exitPending
	}
	return exitFailed
}

// Command returns the root command.
func Command(streams genericiooptions.IOStreams) *cobra.Command {
	s := &session{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), output: formatTable, color: colorAuto}
	root := &cobra.Command{
		Use:   program,
		Short: "Show and control the custom resources of Chartwright",
		Long: `Show and control the custom resources of Chartwright and their Helm releases, with
your permissions. Flags of kubectl such as --as, --user and --server also work.

Exit codes: 0 done; 1 failed or refused; 2 outcome not known yet.`,
		Example:       example("kubectl chartwright list -A", "kubectl chartwright status podset/web", "kubectl chartwright rollback podset/web --wait"),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: commandLine},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	s.addFlags(root)
	WithVersion(root, &s.output)
	root.AddCommand(
		newList(s), newCheck(s), newStatus(s), newTree(s), newHistory(s), newDiff(s),
		newRollback(s), newUnhold(s), newPause(s), newResume(s), newUnpause(s), newReconcile(s), newPlan(s), newApprove(s), newRollout(s),
	)
	return root
}

// addFlags adds the flags of all commands. The help shows only the most common
// flags of kubectl.
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
	for name, usage := range map[string]string{
		"context": "context of the kubeconfig (default: the current context)", "kubeconfig": "kubeconfig file (default: $KUBECONFIG or ~/.kube/config)",
		"namespace": "namespace of the custom resources (default: that of the context)",
	} {
		flags.Lookup(name).Usage = usage
	}
	ChoiceFlag(root, &s.output, "output", "o", "output format", formatTable, formatJSON, formatYAML)
	ChoiceFlag(root, &s.color, "color", "", "colored output; auto: on a terminal, unless NO_COLOR is set", colorAuto, colorAlways, colorNever)
	must(root.RegisterFlagCompletionFunc("namespace", s.completeNamespaces))
	must(root.RegisterFlagCompletionFunc("context", s.completeContexts))
}

// must panics if a flag does not exist, which is a mistake in this program.
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
		words = s.kindNames()
	case len(args) == 1 && !strings.Contains(args[0], "/"):
		words = s.names(cmd, args[0])
	}
	return startingWith(typed, words), cobra.ShellCompDirectiveNoFileComp
}

// completeKind completes a single KIND.
func (s *session) completeKind(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return startingWith(typed, s.kindNames()), cobra.ShellCompDirectiveNoFileComp
}

// completeNamespaces completes -n.
func (s *session) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if s.connect() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespaces := s.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	return startingWith(typed, namesOf(cmd, namespaces)), cobra.ShellCompDirectiveNoFileComp
}

// completeContexts completes --context.
func (s *session) completeContexts(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	// Without a kubeconfig, there are no contexts.
	config, _ := s.flags.ToRawKubeConfigLoader().RawConfig()
	return startingWith(typed, slices.Sorted(maps.Keys(config.Contexts))), cobra.ShellCompDirectiveNoFileComp
}

// kindNames returns the names of kinds for completion. Without a connection it
// returns none.
func (s *session) kindNames() []string {
	kinds, err := s.customKinds("patch")
	if err != nil {
		return nil
	}
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.SingularName
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// customKinds returns the kinds with a verb that may belong to Chartwright.
// Discovery does not name the operator of a kind, so these are the kinds of all API
// groups that are not part of Kubernetes.
func (s *session) customKinds(verb string) ([]metav1.APIResource, error) {
	resources, err := s.resourcesFor(verb)
	return slices.DeleteFunc(resources, func(r metav1.APIResource) bool {
		return !strings.Contains(r.Group, ".") || strings.HasSuffix(r.Group, ".k8s.io")
	}), err
}

// resourcesFor returns the resources of the cluster that have a verb. It omits API
// groups that cannot be discovered.
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
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
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

// names returns the names of the custom resources of a kind.
func (s *session) names(cmd *cobra.Command, kind string) []string {
	if s.connect() != nil {
		return nil
	}
	t, err := s.kind(kind, s.namespace)
	if err != nil {
		return nil
	}
	return namesOf(cmd, t.client)
}

// namesOf returns the names of the objects that the user can list.
func namesOf(cmd *cobra.Command, client dynamic.ResourceInterface) []string {
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

// startingWith returns the words that start with the typed text.
func startingWith(typed string, words []string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, typed) })
}
