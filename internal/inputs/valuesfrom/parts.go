package valuesfrom

import "strings"

// part is how long a part of a secret has to be to be secret itself, at most: of
// a short one, it is half of it.
const part = 6

// RedactParts returns what a parser of templates or YAML says, without secrets and
// without parts of them: a parser quotes what it stumbles over, which may be the
// rest of a password that begins with "*" or "{{". Words that stand in a secret,
// too, are lost with it, so that it is for nothing else.
func (s Secrets) RedactParts(said string) string {
	said = s.Redact(said)
	// Secrets may be large, and what is said is not: its parts are what is kept.
	secret := map[string]bool{}
	for n := shortest; n <= part; n++ {
		for i := 0; i+n <= len(said); i++ {
			secret[said[i:i+n]] = false
		}
	}
	for _, text := range s {
		n := min(part, max(shortest, len(text)/2))
		for i := 0; i+n <= len(text); i++ {
			if _, told := secret[text[i:i+n]]; told {
				secret[text[i:i+n]] = true
			}
		}
	}
	hidden := make([]bool, len(said))
	for n := shortest; n <= part; n++ {
		for i := 0; i+n <= len(said); i++ {
			for j := i; secret[said[i:i+n]] && j < i+n; j++ {
				hidden[j] = true
			}
		}
	}
	var left strings.Builder
	for i, hides := range hidden {
		switch {
		case !hides:
			left.WriteByte(said[i])
		case i == 0 || !hidden[i-1]:
			left.WriteString(redacted)
		}
	}
	// A letter of several bytes may have lost some.
	return strings.ToValidUTF8(left.String(), "")
}
