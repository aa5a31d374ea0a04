package chartkinds

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/chartkind"
)

// TestCredentialsFor_OnlyForBoundHost: a ChartKind cannot send the credentials of a Secret to
// a host of its choice.
func TestCredentialsFor_OnlyForBoundHost(t *testing.T) {
	basic := map[string][]byte{"username": []byte("user"), "password": []byte("canary-password"), "ca.crt": []byte("pem")}
	for _, test := range []struct {
		name  string
		kind  corev1.SecretType
		bound string
		data  map[string][]byte
		from  chartkind.Chart
		// want is a part of the error, empty for credentials.
		want string
	}{
		{"oci", corev1.SecretTypeBasicAuth, "a.test:5000", basic, chartkind.Chart{OCI: "oci://a.test:5000/b/c"}, ""},
		{"url", corev1.SecretTypeBasicAuth, "A.test", basic, chartkind.Chart{URL: "https://a.test/b.tgz"}, ""},
		{"repo", corev1.SecretTypeBasicAuth, "a.test", basic, chartkind.Chart{Repo: "https://a.test/charts"}, ""},
		{"another host", corev1.SecretTypeBasicAuth, "a.test", basic, chartkind.Chart{OCI: "oci://b.test/c"}, "has the host a.test, and the chart is from b.test"},
		{"another port", corev1.SecretTypeBasicAuth, "a.test", basic, chartkind.Chart{OCI: "oci://a.test:5000/c"}, "has the host a.test, and the chart is from a.test:5000"},
		{"a longer host", corev1.SecretTypeBasicAuth, "a.test", basic, chartkind.Chart{OCI: "oci://a.test.evil.test/c"}, "and the chart is from a.test.evil.test"},
		{"not bound", corev1.SecretTypeBasicAuth, "", basic, chartkind.Chart{OCI: "oci://a.test/b"}, "the annotation chartwright.dev/host is missing: set it to the host that may receive the credentials, for example a.test"},
		{"no user name", corev1.SecretTypeBasicAuth, "a.test", nil, chartkind.Chart{OCI: "oci://a.test/b"}, "the key username is missing"},
		{"a docker config", corev1.SecretTypeDockerConfigJson, "", map[string][]byte{".dockerconfigjson": []byte("{}")}, chartkind.Chart{OCI: "oci://a.test/b"}, ""},
		{"a docker config for another host", corev1.SecretTypeDockerConfigJson, "b.test", nil, chartkind.Chart{OCI: "oci://a.test/b"}, "has the host b.test"},
		{"a release record", "helm.sh/release.v1", "a.test", basic, chartkind.Chart{OCI: "oci://a.test/b"}, "its type is helm.sh/release.v1: expected kubernetes.io/basic-auth or kubernetes.io/dockerconfigjson"},
		{"a token", corev1.SecretTypeServiceAccountToken, "", basic, chartkind.Chart{OCI: "oci://a.test/b"}, "the annotation chartwright.dev/host is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}, Type: test.kind, Data: test.data}
			if test.bound != "" {
				secret.Annotations[chartkind.AnnotationHost] = test.bound
			}
			got, err := credentialsFor(secret, test.from.Reference().Host())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if err != nil && (got.Password != "" || strings.Contains(err.Error(), "canary")) {
				t.Errorf("credentials in spite of the error, or in it: %v", err)
			}
			if err == nil && test.kind == corev1.SecretTypeBasicAuth && (got.Username != "user" || got.Password != "canary-password" || string(got.CA) != "pem") {
				t.Errorf("the credentials are incomplete")
			}
		})
	}
}

func TestCredentials_Redact(t *testing.T) {
	c := source.Options{Username: "user", Password: "canary-password"}
	if got := redact(c, "server says: user user:canary-password (dXNlcjpjYW5hcnktcGFzc3dvcmQ=) is wrong"); got != "server says: user user:[redacted] ([redacted]) is wrong" {
		t.Errorf("redacted: %s", got)
	}
	if got := redact(source.Options{Username: "user", Password: "a"}, "a chart of user"); got != "a chart of user" {
		t.Errorf("a short password changes other words: %s", got)
	}
}

func TestPlainHTTP(t *testing.T) {
	c := &Controller{Config: Config{Hosts: []string{"http://a.test:5000", "b.test"}}}
	for _, test := range []struct {
		from      chartkind.Chart
		plain     bool
		wantError bool
	}{
		{chartkind.Chart{OCI: "oci://a.test:5000/b"}, true, false},
		{chartkind.Chart{OCI: "oci://b.test/b"}, false, false},
		{chartkind.Chart{URL: "http://a.test:5000/b.tgz"}, true, false},
		{chartkind.Chart{URL: "http://b.test/b.tgz"}, false, true},
		{chartkind.Chart{Repo: "http://c.test", Name: "b"}, false, true},
		{chartkind.Chart{Repo: "https://c.test", Name: "b"}, false, false},
	} {
		plain, err := c.plainHTTP(test.from)
		if plain != test.plain || (err != nil) != test.wantError {
			t.Errorf("%+v: %v, %v", test.from, plain, err)
		}
	}
}
