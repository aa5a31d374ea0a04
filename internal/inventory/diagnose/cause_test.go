package diagnose

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chartwright/chartwright/internal/apply"
)

func TestCause_StringIsOneLine(t *testing.T) {
	web := apply.Key{Kind: "Pod", Namespace: "default", Name: "web"}
	for _, test := range []struct {
		name  string
		cause Cause
		want  string
	}{
		{"all", Cause{web, "R", "m", "E: e"}, "Pod default/web: R: m; last warning: E: e"},
		{"a reason", Cause{Object: web, Reason: "R"}, "Pod default/web: R"},
		{"a message", Cause{Object: web, Message: "m"}, "Pod default/web: m"},
		{"an event", Cause{Object: web, Event: "E: e"}, "Pod default/web: last warning: E: e"},
		{"nothing", Cause{Object: web}, "Pod default/web: no cause found"},
		{"line breaks and control characters", Cause{web, "R", "a\n\tb\x1b[31mc", ""}, "Pod default/web: R: a b [31mc"},
		{"invalid UTF-8", Cause{web, "R", "a\xff\xfeb", ""}, "Pod default/web: R: ab"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.cause.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if known := test.name != "nothing"; test.cause.Known() != known {
				t.Errorf("Known() is %t", !known)
			}
		})
	}
}

func TestCause_WithAdviceSaysWhatToDo(t *testing.T) {
	pod := apply.Key{Kind: "Pod", Namespace: "default", Name: "web"}
	for want, cause := range map[string]Cause{
		"Pod default/web: ImagePullBackOff: Back-off. To fix it, check the image, its tag and imagePullSecrets": {Object: pod, Reason: "ImagePullBackOff", Message: "Back-off"},
		"Pod default/web: Pending: no node": {Object: pod, Reason: "Pending", Message: "no node"},
	} {
		if got := cause.WithAdvice(); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestCause_StringIsTruncated(t *testing.T) {
	long := strings.Repeat("é\n", 400)
	for _, cause := range []Cause{
		{Message: long},
		{Message: long, Event: "BackOff: the event"},
		{Message: "the message", Event: long},
		{Message: long, Event: long},
		{Object: apply.Key{Name: strings.Repeat("é", 300)}, Message: "x"},
	} {
		got := cause.String()
		if len(got) > maxLine || !utf8.ValidString(got) || !strings.Contains(got, "…") {
			t.Errorf("%d bytes, valid %t: %s", len(got), utf8.ValidString(got), got)
		}
		for _, short := range []string{"BackOff: the event", "the message"} {
			if strings.Contains(cause.Message+cause.Event, short) && !strings.Contains(got, short) {
				t.Errorf("the short part is truncated: %s", got)
			}
		}
	}
	// A text that fits is not truncated.
	whole := Cause{Object: apply.Key{Kind: "Pod", Name: "web"}, Message: strings.Repeat("m", maxLine-len("Pod web: "))}
	if got := whole.String(); len(got) != maxLine || strings.Contains(got, "…") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
