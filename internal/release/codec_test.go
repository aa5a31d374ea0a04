package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

const recordKey = "sh.helm.release.v1.web.v3"

// aRelease returns a release with all fields set.
func aRelease() *engine.Release {
	at := engine.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return &engine.Release{
		Name:      "web",
		Namespace: "apps",
		Version:   3,
		Manifest:  "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
		Config:    map[string]any{"replicas": float64(2), "nothing": nil},
		Labels:    map[string]string{"team": "a", "chartwright.dev/revision": "3"},
		Info: &engine.Info{
			FirstDeployed: at, LastDeployed: at,
			Status: engine.StatusDeployed, Description: "Upgrade complete", Notes: "Enjoy.",
		},
		Hooks: []*engine.Hook{{
			Name: "job", Kind: "Job", Path: "small/templates/job.yaml", Manifest: "kind: Job\n",
			Events: []engine.HookEvent{engine.HookPreInstall}, Weight: 3,
			LastRun: engine.HookExecution{StartedAt: at, CompletedAt: at, Phase: engine.HookPhaseSucceeded},
		}},
		Chart: &engine.Chart{
			Metadata: &engine.Metadata{Name: "small", Version: "1.2.3", AppVersion: "9", APIVersion: "v2"},
			Values:   map[string]any{"greeting": "hello"},
		},
	}
}

// sameRelease compares the stored fields.
var sameRelease = cmp.Options{
	cmpopts.IgnoreUnexported(engine.Chart{}),
	cmpopts.EquateEmpty(),
	// Only the format of Helm 4 has the field.
	cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "ApplyMethod" }, cmp.Ignore()),
	cmp.Transformer("utc", func(t engine.Time) time.Time { return engine.GoTime(t).UTC() }),
}

func mustEncode(t *testing.T, rls *engine.Release) *corev1.Secret {
	t.Helper()
	secret, err := encode(recordKey, rls)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestCodecRoundTrip(t *testing.T) {
	secret := mustEncode(t, aRelease())
	got, err := Decode(secret)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(aRelease(), got, sameRelease); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if secret.Name != recordKey || secret.Type != "helm.sh/release.v1" {
		t.Errorf("the Secret is %s of type %s", secret.Name, secret.Type)
	}
	for key, want := range map[string]string{"name": "web", "owner": "helm", "status": "deployed", "version": "3", "team": "a"} {
		if secret.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, secret.Labels[key], want)
		}
	}
}

func TestEncode_DoesNotChangeRelease(t *testing.T) {
	rls := aRelease()
	rls.Chart.Templates = []*engine.File{{Name: "templates/a.yaml", Data: []byte("secret-template")}}
	rls.Chart.Files = []*engine.File{{Name: "files/a.txt", Data: []byte("secret-file")}}
	rls.Chart.Schema = []byte(`{"title": "secret-schema"}`)
	secret := mustEncode(t, rls)
	if len(rls.Chart.Templates) != 1 || len(rls.Chart.Files) != 1 || rls.Labels["name"] != "" {
		t.Error("encoding changed the release")
	}
	text := unpack(t, secret)
	for _, stripped := range []string{base64.StdEncoding.EncodeToString([]byte("secret-template")), base64.StdEncoding.EncodeToString([]byte("secret-file")), base64.StdEncoding.EncodeToString(rls.Chart.Schema)} {
		if strings.Contains(text, stripped) {
			t.Errorf("the record holds %s", stripped)
		}
	}
	got, err := Decode(secret)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, `"apply_method":"ssa"`) {
		t.Error("the record does not show Helm 4 that the objects are applied on the server")
	}
	if got.Chart.Metadata.Name != "small" || got.Chart.Values["greeting"] != "hello" {
		t.Errorf("the record does not contain the chart's metadata or values: %+v", got.Chart)
	}
}

func unpack(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(string(secret.Data["release"]))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(reader); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// Users continue to use the helm CLI.
func TestEncode_ReadableByHelm(t *testing.T) {
	secret := mustEncode(t, aRelease())
	secret.Namespace = "apps"
	theirs := engine.NewSecretsDriver(fake.NewClientset(secret).CoreV1().Secrets("apps"))
	got, err := theirs.Get(recordKey)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(aRelease(), got, sameRelease); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	found, err := theirs.Query(map[string]string{"name": "web", "owner": "helm", "status": "deployed"})
	if err != nil || len(found) != 1 {
		t.Errorf("Helm finds %d records, %v", len(found), err)
	}
}

func TestDecode_RecordOfHelm(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("apps")
	if err := engine.NewSecretsDriver(secrets).Create(recordKey, aRelease()); err != nil {
		t.Fatal(err)
	}
	secret, err := secrets.Get(t.Context(), recordKey, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(secret)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(aRelease(), got, sameRelease); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEncode_TooLarge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // text that does not pack, not a secret
	noise := make([]byte, MaxRecord)
	for i := range noise {
		noise[i] = byte('!' + random.IntN(90))
	}
	rls := aRelease()
	rls.Manifest = string(noise)
	if _, err := encode(recordKey, rls); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "KiB") {
		t.Errorf("error %v, want ErrTooLarge with the sizes", err)
	}
	rls.Manifest = strings.Repeat("a", 10*MaxRecord)
	if _, err := encode(recordKey, rls); err != nil {
		t.Errorf("a manifest that compresses well: %v", err)
	}
}

func TestDecode_CorruptRecord(t *testing.T) {
	good := string(mustEncode(t, aRelease()).Data["release"])
	pack := func(text string) string {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		if _, err := writer.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(packed.Bytes())
	}
	for name, data := range map[string]string{
		"nothing":        "",
		"no base64":      "%%%",
		"no gzip":        base64.StdEncoding.EncodeToString([]byte("text")),
		"cut short":      good[:len(good)/2/4*4],
		"no JSON":        pack("not JSON"),
		"no object":      pack("[]"),
		"no info":        pack(`{"name": "web"}`),
		"null":           pack("null"),
		"the wrong type": pack(`{"name": 3, "info": {}}`),
		"a bomb":         pack(`{"info": {}, "manifest": "` + strings.Repeat("x", maxUnpacked) + `"}`),
		"many values":    pack(`{"info": {}, "config": {"a": [` + strings.Repeat("{},", maxTokens/2) + `{}]}}`),
		"many stored":    pack(`{"info": {}, "config": {"a": [` + strings.Repeat("{},", maxStored) + `{}]}}`),
		"an alias bomb":  pack(`{"info": {}, "manifest": "a: &a ` + strings.Repeat("x", 100_000) + `\nb: [` + strings.Repeat("*a,", 1000) + `*a]"}`),
		"many lines":     pack(`{"info": {}, "manifest": "` + strings.Repeat(`-\n`, maxTokens) + `"}`),
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: recordKey}, Data: map[string][]byte{"release": []byte(data)}}
			if _, err := Decode(secret); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), recordKey) {
				t.Errorf("error %v, want ErrCorrupt that names the record", err)
			}
		})
	}
	if _, err := Decode(&corev1.Secret{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a Secret without data: %v", err)
	}
}

// Encode must not write a record that Decode rejects.
func TestEncode_RejectsWhatDecodeRejects(t *testing.T) {
	for name, manifest := range map[string]string{
		"size":  strings.Repeat("x", maxUnpacked),
		"lines": strings.Repeat("-\n", maxTokens),
	} {
		rls := aRelease()
		rls.Manifest = manifest
		if _, err := encode(recordKey, rls); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: error %v, want ErrTooLarge", name, err)
		}
	}
	rls := aRelease()
	rls.Manifest = strings.Repeat("-\n", maxTokens*9/10)
	if _, err := Decode(mustEncode(t, rls)); err != nil {
		t.Errorf("a record within the limits: %v", err)
	}
}

// Concurrent calls must not mix their data.
func TestEncode_ReusesWritersConcurrently(t *testing.T) {
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 20 {
				rls := aRelease()
				rls.Manifest = fmt.Sprintf("worker %d, turn %d", worker, i)
				secret, err := encode(recordKey, rls)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := Decode(secret); err != nil || got.Manifest != rls.Manifest {
					t.Errorf("%q was decoded as %+v, %v", rls.Manifest, got, err)
				}
			}
		})
	}
	wait.Wait()
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("H4sIAAAAAAAA/w=="))
	f.Fuzz(func(t *testing.T, data []byte) {
		rls, err := Decode(&corev1.Secret{Data: map[string][]byte{"release": data}})
		if err == nil && rls.Info == nil || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%+v, %v", rls, err)
		}
	})
}
