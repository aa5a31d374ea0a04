package boundedyaml

// JSONValues returns an upper bound for the number of values that a JSON text
// holds: its commas, lists and maps outside of strings, and one more.
func JSONValues[T ~string | ~[]byte](text T) int {
	count, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++
		case ',', '[', '{':
			if !quoted {
				count++
			}
		}
	}
	return count
}
