package operator

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/record"
)

func TestOwnPod(t *testing.T) {
	none := errors.New("none")
	for _, test := range []struct {
		name                 string
		env                  map[string]string
		namespace, host, uid string
		want                 string
	}{
		{"by variables", map[string]string{"POD_NAMESPACE": "a", "POD_NAME": "b", "POD_UID": "c"}, "", "", "c", "a/b"},
		{"by the account's files", nil, "system\n", "operator-0", "", "system/operator-0"},
		{"only a name", map[string]string{"POD_NAME": "b"}, "system", "host", "", "system/b"},
		{"only a namespace", map[string]string{"POD_NAMESPACE": "a"}, "", "operator-0", "", "a/operator-0"},
		{"on a person's machine", nil, "", "laptop", "", ""},
		{"a name, on a person's machine", map[string]string{"POD_NAME": "b"}, "", "laptop", "", ""},
		{"without a host's name", nil, "system", "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := ownPod(func(name string) string { return test.env[name] }, func(name string) ([]byte, error) {
				if test.namespace == "" || name != namespaceFile {
					return nil, none
				}
				return []byte(test.namespace), nil
			}, func() (string, error) {
				if test.host == "" {
					return "", none
				}
				return test.host, nil
			})
			if (pod == nil) != (test.want == "") {
				t.Fatalf("the pod is %v, want %q", pod, test.want)
			}
			if pod != nil && (pod.Namespace+"/"+pod.Name != test.want || string(pod.UID) != test.uid || pod.Kind != "Pod") {
				t.Errorf("the pod is %+v, want %q", pod, test.want)
			}
		})
	}
}

func TestNotices_ShortenLongTexts(t *testing.T) {
	recorder := record.NewFakeRecorder(2)
	n := notices{recorder: recorder, pod: ownPod(func(string) string { return "a" }, nil, nil)}
	n.warn("Reason", strings.Repeat("ä", maxEvent))
	text := strings.TrimPrefix(<-recorder.Events, "Warning Reason ")
	if len(text) > maxEvent || !utf8.ValidString(text) || !strings.HasSuffix(text, "(complete text: /readyz)") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	n.warn("Reason", "short")
	if text := <-recorder.Events; text != "Warning Reason short" {
		t.Error(text)
	}
	notices{recorder: recorder}.warn("Reason", "outside a cluster")
	if len(recorder.Events) > 0 {
		t.Error("there is an event of no pod")
	}
}
