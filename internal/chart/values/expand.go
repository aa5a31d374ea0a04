package values

import (
	"fmt"
	"os"
	"strings"
	"text/template"

	sprig "github.com/go-task/slim-sprig/v3"
)

// Expand returns the text with $NAME and ${NAME} replaced from the environment
// and then executed as a template with sprig's functions and no data, which is
// how the operator-sdk expands overrideValues.
func Expand(text string) (string, error) {
	tmpl, err := template.New("").Funcs(sprig.TxtFuncMap()).Option("missingkey=error").Parse(os.ExpandEnv(text))
	if err != nil {
		return "", fmt.Errorf("not a template: %w", err)
	}
	var out strings.Builder
	if err := tmpl.Execute(&out, nil); err != nil {
		return "", fmt.Errorf("executing the template: %w", err)
	}
	return out.String(), nil
}
