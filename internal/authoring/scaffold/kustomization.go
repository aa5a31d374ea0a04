package scaffold

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const emptyKustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: []
`

// kustomize plans a kustomization.yaml that lists the resources. It removes items that
// match owned and whose files do not exist. All other lines are preserved.
func (p *Plan) kustomize(folder string, resources []string, owned *regexp.Regexp) error {
	file := folder + "/kustomization.yaml"
	text, err := p.read(file)
	if err != nil {
		return err
	}
	if text == nil {
		text = []byte(emptyKustomization)
	}
	text, err = listResources(text, resources, func(name string) (bool, error) {
		if !owned.MatchString(name) {
			return false, nil
		}
		data, err := p.read(folder + "/" + name)
		return data == nil, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return p.write(file, text)
}

// listResources adds missing items to the resources of a kustomization, and removes
// those that are gone.
func listResources(text []byte, resources []string, gone func(string) (bool, error)) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	var list *yaml.Node
	if len(document.Content) > 0 {
		_, list = lookup(document.Content[0], "resources")
	}
	var stale []*yaml.Node
	var have []string
	if list != nil {
		for _, item := range list.Content {
			isGone, err := gone(item.Value)
			switch {
			case err != nil:
				return nil, err
			case isGone:
				stale = append(stale, item)
			default:
				have = append(have, item.Value)
			}
		}
	}
	missing := slices.DeleteFunc(slices.Clone(resources), func(name string) bool { return slices.Contains(have, name) })
	nl := newline(text)
	switch {
	case len(missing) == 0 && len(stale) == 0:
		return text, nil
	case list == nil:
		return append(withNewline(text), "resources:"+nl+items(missing, "  ", nl)...), nil
	case list.Kind != yaml.SequenceNode && list.Tag != "!!null":
		return nil, fmt.Errorf("line %d: resources: want a list", list.Line)
	case list.Tag == "!!null", list.Style&yaml.FlowStyle != 0:
		from := offset(text, list.Line, list.Column)
		to := from
		if list.Kind == yaml.SequenceNode {
			var err error
			if to, err = closedEnd(text, from); err != nil {
				return nil, fmt.Errorf("line %d: resources: %w", list.Line, err)
			}
		}
		all := slices.Concat(have, missing)
		if len(all) == 0 {
			return splice(text, from, to, "[]"), nil
		}
		from = len(bytes.TrimRight(text[:from], " "))
		return splice(text, from, to, nl+strings.TrimSuffix(items(all, "  ", nl), nl)), nil
	default:
		return editItems(text, list, stale, missing, len(have) == 0), nil
	}
}

// editItems removes stale items from a list in block style, and appends missing ones.
func editItems(text []byte, list *yaml.Node, stale []*yaml.Node, missing []string, emptied bool) []byte {
	nl := newline(text)
	text = withNewline(text)
	last := list.Content[len(list.Content)-1]
	indent := strings.Repeat(" ", list.Column-1)
	end := nextLine(text, offset(text, last.Line, 1))
	// Comments with the same indentation belong to the list.
	for indent != "" && strings.HasPrefix(string(text[end:]), indent+"#") {
		end = nextLine(text, end)
	}
	text = splice(text, end, end, items(missing, indent, nl))
	for _, item := range slices.Backward(stale) {
		from := offset(text, item.Line, 1)
		text = splice(text, from, nextLine(text, from), "")
	}
	if emptied && len(missing) == 0 {
		// The key is on a line before the first item.
		at := strings.LastIndex(string(text[:offset(text, list.Content[0].Line, 1)]), "resources:") + len("resources:")
		text = splice(text, at, at, " []")
	}
	return text
}

// items returns the lines of a list in block style.
func items(names []string, indent, nl string) string {
	var lines strings.Builder
	for _, name := range names {
		lines.WriteString(indent + "- " + name + nl)
	}
	return lines.String()
}
