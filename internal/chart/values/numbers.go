package values

// Numbers determines the type of the whole numbers that templates get. The zero Numbers are
// those of helm's -f, Flux and Argo CD: every number is a float64.
type Numbers struct {
	// Integers makes them int64, as the operator-sdk does.
	Integers bool
	// Set holds values that are int64 in any case, as with helm's --set.
	Set map[string]any
}

// For returns the values that templates get for given values, which FromSpec or Normalize
// returned. The result may share data with them, so that the caller must not change it.
func (n Numbers) For(given map[string]any) map[string]any {
	if n.Integers {
		return given
	}
	return floats(given, n.Set)
}

func floats(given, set map[string]any) map[string]any {
	copied := make(map[string]any, len(given))
	for key, value := range given {
		over, isSet := set[key]
		inner, isMap := value.(map[string]any)
		overs, areMaps := over.(map[string]any)
		switch {
		case isMap && (areMaps || !isSet):
			copied[key] = floats(inner, overs)
		case isSet:
			copied[key] = value
		default:
			copied[key] = float(value)
		}
	}
	return copied
}

// float returns a value whose numbers are float64.
func float(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return floats(v, nil)
	case []any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = float(inner)
		}
		return list
	case int64:
		return float64(v)
	default:
		return value
	}
}
