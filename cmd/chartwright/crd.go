package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/crd"
)

func newCRD() *cobra.Command {
	var watchesFile, dir string
	var check bool
	cmd := &cobra.Command{
		Use:   "crd",
		Short: "Derive the CustomResourceDefinitions from the charts",
		Long: `Derive the CustomResourceDefinition of each kind from its chart's
values.schema.json and print them all, or write one file a kind, named
<group>_<plural>.yaml, into a folder.

What the API server cannot check of a schema is told on stderr.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check && dir == "" {
				return errors.New("--check: tell which files with --output-dir")
			}
			kinds, err := loadKinds(watchesFile)
			if err != nil {
				return fmt.Errorf("the watches file cannot be used:\n%w", err)
			}
			definitions, err := generateCRDs(cmd, kinds)
			if err != nil {
				return err
			}
			switch {
			case check:
				return checkCRDs(dir, definitions)
			case dir != "":
				return writeCRDs(dir, definitions)
			default:
				return printCRDs(cmd, definitions)
			}
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&watchesFile, "watches-file", "", "watches file with the kinds; chart paths are relative to it (default: "+defaultWatches+")")
	flags.StringVar(&dir, "output-dir", "", "folder to write one file a kind into, rather than print them")
	flags.BoolVar(&check, "check", false, "write nothing; fail if a file in --output-dir is missing or not up to date")
	return cmd
}

func generateCRDs(cmd *cobra.Command, kinds []catalog.Kind) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	definitions := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(kinds))
	seen := map[string]string{}
	for _, kind := range kinds {
		definition, warnings, err := crd.Generate(kind)
		if err != nil {
			return nil, err
		}
		if other, exists := seen[definition.Name]; exists {
			return nil, fmt.Errorf("the kinds %s and %s would share the CustomResourceDefinition %s", other, kind.Kind, definition.Name)
		}
		seen[definition.Name] = kind.Kind
		for _, warning := range warnings {
			cmd.PrintErrf("Warning: %s: %s\n", kind.Kind, warning)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}

func printCRDs(cmd *cobra.Command, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range definitions {
		data, err := crd.Marshal(definition)
		if err != nil {
			return err
		}
		if _, err := cmd.OutOrStdout().Write(data); err != nil {
			return err
		}
	}
	return nil
}

func writeCRDs(dir string, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range definitions {
		if err := crd.Write(dir, definition); err != nil {
			return err
		}
	}
	return nil
}

func checkCRDs(dir string, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	var stale []string
	for _, definition := range definitions {
		is, err := crd.Stale(dir, definition)
		if err != nil {
			return err
		}
		if is {
			stale = append(stale, filepath.Join(dir, crd.FileName(definition)))
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("not up to date, run 'make manifests': %s", strings.Join(stale, ", "))
	}
	return nil
}
