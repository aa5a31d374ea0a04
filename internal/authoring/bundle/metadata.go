package bundle

import (
	"cmp"
	"fmt"
	"strings"
)

// metadata writes what tells catalogs of the bundle: annotations.yaml and the
// labels of the image, which say the same, and the scorecard's configuration.
func (m *maker) metadata() error {
	const operators = "operators.operatorframework.io."
	pairs := []struct{ key, value string }{
		{operators + "bundle.mediatype.v1", "registry+v1"},
		{operators + "bundle.manifests.v1", "manifests/"},
		{operators + "bundle.metadata.v1", "metadata/"},
		{operators + "bundle.package.v1", m.Name},
		{operators + "bundle.channels.v1", strings.Join(m.Channels, ",")},
		{operators + "bundle.channel.default.v1", cmp.Or(m.DefaultChannel, m.Channels[0])},
	}
	folders := []string{"manifests", "metadata"}
	if m.scorecard != nil {
		pairs = append(pairs,
			struct{ key, value string }{operators + "test.mediatype.v1", "scorecard+v1"},
			struct{ key, value string }{operators + "test.config.v1", "tests/scorecard/"})
		folders = append(folders, "tests/scorecard")
		if err := m.file("tests/scorecard/config.yaml", m.scorecard.Object); err != nil {
			return err
		}
	}
	annotations := map[string]string{}
	var dockerfile strings.Builder
	dockerfile.WriteString(header + "FROM scratch\n\n")
	for _, pair := range pairs {
		annotations[pair.key] = pair.value
		fmt.Fprintf(&dockerfile, "LABEL %s=%s\n", pair.key, pair.value)
	}
	dockerfile.WriteString("\n")
	for _, folder := range folders {
		fmt.Fprintf(&dockerfile, "COPY %s/%s /%s/\n", m.Folder, folder, folder)
	}
	m.bundle.Dockerfile = []byte(dockerfile.String())
	return m.file("metadata/annotations.yaml", map[string]any{"annotations": annotations})
}
