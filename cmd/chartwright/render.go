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
	"github.com/chartwright/chartwright/internal/plugin"
)

// renderFlags are the flags of render.
type renderFlags struct {
	files                          []string
	watchesFile, namespace, output string
	showNotes, noHooks             bool
	options                        preview.Options
}

func newRender() *cobra.Command {
	var f renderFlags
	cmd := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Render custom resources",
		Long: `Render the custom resources in a file as the operator would install them, without
a cluster: the manifest and the hooks.

Put the objects of valuesFrom into the same files, with the status that expressions
read; the output contains their values wherever the chart uses them. lookup finds
nothing, and each release is new. A custom resource that does not match the chart's
schema is an error.`,
		Example: `  chartwright render -f web.yaml
  chartwright render -f web.yaml -f secrets.yaml --validate
  kubectl get podset web -o yaml | chartwright render -f -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Files as arguments are the former usage.
			if f.files = append(f.files, args...); len(f.files) == 0 {
				return errors.New("expected -f FILE")
			}
			kinds, err := findKinds(f.watchesFile)
			if err != nil {
				return err
			}
			return render(cmd, kinds, f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "file with custom resources, - for standard input; repeatable (required)")
	flags.StringVar(&f.watchesFile, "watches-file", "", "watches file (default: "+defaultWatches+")")
	flags.StringVarP(&f.namespace, "namespace", "n", "default", "namespace of custom resources without a namespace")
	flags.BoolVar(&f.options.Validate, "validate", false, "validate against the CRD and the allow block of the entry")
	flags.StringVar(&f.options.KubeVersion, "kube-version", "", "Kubernetes version for .Capabilities, such as v1.36.0 (default: that of the libraries)")
	flags.StringSliceVarP(&f.options.APIVersions, "api-versions", "a", nil, "API versions for .Capabilities, such as monitoring.coreos.com/v1 (default: those of Kubernetes)")
	flags.BoolVar(&f.showNotes, "show-notes", false, "print the notes of the chart as comments")
	flags.BoolVar(&f.noHooks, "no-hooks", false, "omit hooks")
	f.output = "yaml"
	plugin.ChoiceFlag(cmd, &f.output, "output", "o", "output format", "yaml", "json")
	return cmd
}

// render prints the custom resources that render, and returns the errors of the others.
func render(cmd *cobra.Command, kinds []catalog.Kind, f renderFlags) error {
	read := preview.NewFile(kinds, f.namespace)
	for _, name := range f.files {
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
		return fmt.Errorf("no custom resource in %s: expected one of %s", strings.Join(f.files, ", "), strings.Join(kindNames(kinds), ", "))
	}
	var problems []error
	var objects []any
	for _, resource := range read.Resources {
		rendered, err := read.Render(cmd.Context(), resource, f.options)
		for _, warning := range rendered.Warnings {
			cmd.PrintErrf("Warning: %s: %s: %s\n", resource.Place, resource, warning)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", resource.Place, resource, err))
			continue
		}
		if f.output == "json" {
			all := rendered.Objects
			if !f.noHooks {
				all = slices.Concat(all, rendered.Hooks)
			}
			for _, object := range all {
				objects = append(objects, object)
			}
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
	if f.output == "json" {
		problems = append(problems, printList(cmd, objects))
	}
	return errors.Join(problems...)
}

// renderedText returns the output for a release.
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
