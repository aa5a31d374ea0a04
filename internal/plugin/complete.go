package plugin

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// completeTarget completes KIND/NAME and KIND NAME.
func (s *session) completeTarget(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if kind, _, slash := strings.Cut(typed, "/"); slash && len(args) == 0 {
		return starting(typed, prefixed(kind+"/", s.names(cmd, kind))), cobra.ShellCompDirectiveNoFileComp
	}
	switch {
	case len(args) == 0:
		return starting(typed, s.kinds()), cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && !strings.Contains(args[0], "/"):
		return starting(typed, s.names(cmd, args[0])), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
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
	client, err := s.flags.ToDiscoveryClient()
	if err != nil {
		return nil
	}
	// A group that does not answer leaves the others.
	lists, _ := client.ServerPreferredResources()
	var found []string
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || !strings.Contains(group.Group, ".") || strings.HasSuffix(group.Group, ".k8s.io") {
			continue
		}
		for i := range list.APIResources {
			if r := &list.APIResources[i]; slices.Contains(r.Verbs, "patch") && !strings.Contains(r.Name, "/") {
				found = append(found, r.SingularName)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// names returns those of the custom resources of a kind.
func (s *session) names(cmd *cobra.Command, kind string) []string {
	mapping, err := s.kind(kind)
	if err != nil {
		return nil
	}
	client, err := s.dynamic()
	if err != nil {
		return nil
	}
	namespace, _, err := s.namespace()
	if err != nil {
		return nil
	}
	list, err := client.Resource(mapping.Resource).Namespace(scoped(mapping, namespace)).List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].GetName()
	}
	return names
}

// completeNamespaces completes -n.
func (s *session) completeNamespaces(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	client, err := s.dynamic()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(cmd.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].GetName()
	}
	return starting(typed, names), cobra.ShellCompDirectiveNoFileComp
}

func prefixed(prefix string, words []string) []string {
	for i := range words {
		words[i] = prefix + words[i]
	}
	return words
}

// starting returns the words that go on from what was typed.
func starting(typed string, words []string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, typed) })
}
