package watches

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Text is a text that may be written as a bool, too, for which people take
// "true" and "false".
type Text string

// UnmarshalJSON reads a text or a bool.
func (t *Text) UnmarshalJSON(data []byte) error {
	var written any
	if err := json.Unmarshal(data, &written); err != nil {
		return err
	}
	switch value := written.(type) {
	case nil:
	case string:
		*t = Text(value)
	case bool:
		*t = Text(strconv.FormatBool(value))
	default:
		return fmt.Errorf("expected true, false or a template, found %s", data)
	}
	return nil
}
