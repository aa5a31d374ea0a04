package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/catalog"
)

// renderFlags are those of the command render.
type renderFlags struct {
	watchesFile, namespace string
	showNotes, noHooks     bool
	options                preview.Options
}

func newRender() *cobra.Command {
	var f renderFlags
	cmd := &cobra.Command{
		Use:   "render FILE...",
		Short: "Print what the operator would render for a custom resource",
		Long: `Print what the operator would install for each custom resource in files, or on
standard input where FILE is -, without a cluster: the manifest as helm get
manifest shows it later, and the hooks.

Secrets and ConfigMaps that the watches entry takes values from (valuesFrom) are
read from the same files; what they hold is printed wherever the chart puts it.
A lookup finds nothing, the API versions are those of Kubernetes itself unless
--api-versions names more, and every release is a new one.

A custom resource that the chart's schema refuses is an error. With --validate,
so is one that the API server would refuse by the kind's CRD, or of which the
operator would refuse what the chart renders (allow in the watches file).`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			kinds, err := findKinds(f.watchesFile)
			if err != nil {
				return err
			}
			return render(cmd, files, kinds, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.watchesFile, "watches-file", "", "watches file with the kinds (default: ./watches.yaml or, if there is none, the one that is embedded)")
	flags.StringVarP(&f.namespace, "namespace", "n", "default", "namespace of what names none")
	flags.BoolVar(&f.options.Validate, "validate", false, "also say whether the API server would take the custom resource, and the operator what is rendered")
	flags.StringVar(&f.options.KubeVersion, "kube-version", "", "version of Kubernetes that the chart finds in .Capabilities, as v1.36.0 (default: that of the libraries in this binary)")
	flags.StringSliceVarP(&f.options.APIVersions, "api-versions", "a", nil, "API versions that the chart finds besides, as monitoring.coreos.com/v1")
	flags.BoolVar(&f.showNotes, "show-notes", false, "print the chart's notes, too, as comments")
	flags.BoolVar(&f.noHooks, "no-hooks", false, "leave the hooks out")
	return cmd
}

// render prints what can be rendered, and returns what is wrong with the rest.
func render(cmd *cobra.Command, files []string, kinds []catalog.Kind, f renderFlags) error {
	read := preview.NewFile(kinds, f.namespace)
	for _, name := range files {
		shown, data, err := preview.ReadFile(cmd.InOrStdin(), name)
		if err != nil {
			return err
		}
		if err := read.Parse(shown, data); err != nil {
			return err
		}
	}
	for _, other := range read.Others {
		cmd.PrintErrf("Warning: %s\n", other)
	}
	if len(read.Resources) == 0 {
		return fmt.Errorf("there is no custom resource in %s: expected one of %s", strings.Join(files, ", "), strings.Join(kindNames(kinds), ", "))
	}
	var problems []error
	for _, resource := range read.Resources {
		rendered, err := read.Render(cmd.Context(), resource, f.options)
		for _, warning := range rendered.Warnings {
			cmd.PrintErrf("Warning: %s: %s: %s\n", resource.Place, resource, warning)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", resource.Place, resource, err))
			continue
		}
		title := ""
		if len(read.Resources) > 1 {
			title = fmt.Sprintf("# %s: release %s in namespace %s\n", resource, rendered.Release, rendered.Namespace)
		}
		if _, err := io.WriteString(cmd.OutOrStdout(), title+renderedText(rendered, f)); err != nil {
			return err
		}
	}
	return errors.Join(problems...)
}

// renderedText is what is printed of a release.
func renderedText(rendered *preview.Preview, f renderFlags) string {
	text := rendered.Manifest
	if !f.noHooks {
		text += rendered.HookManifest()
	}
	if notes := strings.TrimSpace(rendered.Notes); f.showNotes && notes != "" {
		text += "# Notes:\n# " + strings.ReplaceAll(notes, "\n", "\n# ") + "\n"
	}
	return text
}

func kindNames(kinds []catalog.Kind) []string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.GVK().GroupVersion().String() + " " + kind.Kind
	}
	slices.Sort(names)
	return names
}
