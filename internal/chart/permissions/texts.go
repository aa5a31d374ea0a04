package permissions

import "slices"

// texts are what an expression can print: all of it where complete, and
// something else, too, where not.
type texts struct {
	list     []string
	complete bool
}

// of returns texts that are known.
func of(list ...string) texts { return texts{list: list, complete: true} }

// all returns the texts, with one that stands for those that are not known.
func (t texts) all() []string {
	if t.complete {
		return t.list
	}
	return append(slices.Clone(t.list), unknown)
}

// or returns what either can print.
func (t texts) or(other texts) texts {
	joined := texts{list: slices.Clone(t.list), complete: t.complete && other.complete}
	if len(t.list) == 0 && !t.complete {
		// Nothing was known of it so far.
		joined.complete = other.complete
	}
	for _, text := range other.list {
		if !slices.Contains(joined.list, text) {
			joined.list = append(joined.list, text)
		}
	}
	if len(joined.list) > maxTexts {
		return texts{}
	}
	return joined
}

// each changes the texts that are known.
func (t texts) each(change func(string) string) texts {
	changed := texts{complete: t.complete}
	for _, text := range t.list {
		changed.list = append(changed.list, change(text))
	}
	return changed
}

// product returns every text of one followed by every text of the other.
func product(one, two texts) texts {
	joined := of()
	for _, a := range one.all() {
		for _, b := range two.all() {
			joined.list = append(joined.list, a+b)
		}
	}
	if len(joined.list) > maxTexts {
		return texts{}
	}
	return joined
}
