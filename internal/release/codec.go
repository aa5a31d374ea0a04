package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// MaxRecord is the size limit of a Secret in the API server.
const MaxRecord = 1 << 20

// A record of 1 MiB can unpack to 1 GiB, and decoding takes several times as much
// memory. The limits of an unpacked record, in bytes and in tokens, exceed those of a
// render by at least a quarter.
const maxUnpacked = 32 << 20

var maxTokens = render.Defaults().Tokens * 5 / 4

// maxStored limits the values of a record except for its manifest: those of its config,
// its chart's values and its hooks. Each takes about 100 bytes while an action runs,
// and 16 actions can run at the same time.
const maxStored = 200_000

// largeText is the size in bytes above which records are decoded one at a time, because
// decoding takes several times as much memory as the text.
const largeText = 1 << 20

var largeRecords sync.Mutex

// ErrTooLarge marks a release that does not fit into a Secret.
var ErrTooLarge = errors.New("the release is too large to be stored")

// ErrCorrupt marks a record whose content cannot be decoded.
var ErrCorrupt = errors.New("the release record is corrupt")

// writers and readers are reused, because a writer takes almost 1 MB and a reader 40
// KB.
var (
	writers = pool[*gzip.Writer]{make: func() *gzip.Writer { return gzip.NewWriter(io.Discard) }}
	readers = pool[*gzip.Reader]{make: func() *gzip.Reader { return new(gzip.Reader) }}
)

// pool is a typed sync.Pool.
type pool[T any] struct {
	pool sync.Pool
	make func() T
}

func (p *pool[T]) get() T {
	if held, ok := p.pool.Get().(T); ok {
		return held
	}
	return p.make()
}

func (p *pool[T]) put(one T) { p.pool.Put(one) }

// encode returns the Secret of a release, in Helm's format.
func encode(key string, rls *engine.Release) (*corev1.Secret, error) {
	data, err := Pack(rls)
	if err != nil {
		return nil, fmt.Errorf("encode release record %s: %w", key, err)
	}
	if len(data) > MaxRecord {
		return nil, fmt.Errorf("%w: its manifest and values take %d KiB compressed, the limit of a Secret is %d KiB", ErrTooLarge, len(data)>>10, MaxRecord>>10)
	}
	labels := map[string]string{}
	maps.Copy(labels, rls.Labels)
	maps.Copy(labels, map[string]string{
		LabelName:    rls.Name,
		LabelOwner:   OwnerHelm,
		LabelStatus:  rls.Info.Status.String(),
		LabelVersion: strconv.Itoa(rls.Version),
	})
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: key, Labels: labels},
		Type:       SecretType,
		Data:       map[string][]byte{"release": data},
	}, nil
}

// Pack returns the data for the Secret of a release: base64 of gzip of JSON. It omits
// the chart's templates and files, which no command of Helm needs later and which are
// most of the size.
func Pack(rls *engine.Release) ([]byte, error) {
	stored := *rls
	if rls.Chart != nil {
		stored.Chart = &engine.Chart{Metadata: rls.Chart.Metadata, Values: rls.Chart.Values}
	}
	text, err := json.Marshal(struct {
		*engine.Release
		// Helm 4 continues with server-side apply if a record has this field.
		ApplyMethod string `json:"apply_method"`
	}{&stored, "ssa"})
	if err != nil {
		return nil, err
	}
	if err := checkSize(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	var packed bytes.Buffer
	writer := writers.get()
	defer writers.put(writer)
	writer.Reset(&packed)
	if _, err := writer.Write(text); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes())), nil
}

// Decode decodes a record. The error is ErrCorrupt if the content cannot be decoded.
func Decode(secret *corev1.Secret) (*engine.Release, error) {
	rls := &engine.Release{}
	if err := decodeData(secret.Data["release"], rls); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, secret.Name, err)
	}
	rls.Labels = maps.Clone(secret.Labels)
	for _, key := range engine.SystemLabels() {
		delete(rls.Labels, key)
	}
	return rls, nil
}

// decodeData decodes the data that Pack returns.
func decodeData(data []byte, into *engine.Release) error {
	packed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return err
	}
	reader := readers.get()
	defer readers.put(reader)
	if err := reader.Reset(bytes.NewReader(packed)); err != nil {
		return err
	}
	if err := readRelease(reader, into); err != nil {
		return err
	}
	if into.Info == nil {
		return errors.New("it has no info")
	}
	if slices.Contains(into.Hooks, nil) {
		// The code that reads hooks does not check for nil.
		return errors.New("one of its hooks is null")
	}
	return nil
}

// readRelease decodes the JSON of a release.
func readRelease(from io.Reader, into *engine.Release) error {
	text, err := io.ReadAll(io.LimitReader(from, largeText))
	if err == nil && len(text) == largeText {
		largeRecords.Lock()
		defer largeRecords.Unlock()
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(from, maxUnpacked-largeText+1))
		text = append(text, rest...)
	}
	if err != nil {
		return err
	}
	if err := checkSize(text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return err
	}
	// Helm parses the manifest without limits when it uninstalls the release.
	if err := (boundedyaml.Limits{Bytes: maxUnpacked, Values: maxTokens}).Check(into.Manifest); err != nil {
		return fmt.Errorf("its manifest: %w", err)
	}
	return nil
}

// checkSize returns an error for a release that takes too much memory to decode.
func checkSize(text []byte) error {
	if len(text) > maxUnpacked {
		return fmt.Errorf("the unpacked release is larger than %d MiB", maxUnpacked>>20)
	}
	// The newlines of the manifest are escaped in JSON.
	if boundedyaml.Tokens(text)+bytes.Count(text, []byte(`\n`)) > maxTokens {
		return fmt.Errorf("it holds more than %d lines, keys and items of lists", maxTokens)
	}
	if boundedyaml.JSONValues(text) > maxStored {
		return fmt.Errorf("it holds more than %d values in addition to its manifest", maxStored)
	}
	return nil
}

// RecordSize returns the size of the record of a rendered release. The limit is
// MaxRecord.
func RecordSize(r *chart.Rendered) (int, error) {
	data, err := Pack(r.Release)
	return len(data), err
}

// setAside copies a record that cannot be decoded to another Secret and deletes the
// record. Otherwise every upgrade would read it, and a new record could need its name.
// The copy is for analysis by an administrator. It may contain secrets, so the garbage collector
// deletes it with the custom resource, if both are in one namespace.
func (d *Driver) setAside(secret *corev1.Secret, cause error) error {
	aside := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("%s.damaged-%s", secret.Name, secret.UID[:min(8, len(secret.UID))]),
			Labels:      maps.Clone(secret.Labels),
			Annotations: secret.Annotations,
		},
		Type: secret.Type,
		Data: secret.Data,
	}
	metav1.SetMetaDataLabel(&aside.ObjectMeta, LabelOwner, OwnerCorrupt)
	if owner := d.Stamp.owner; owner.Namespace == "" || owner.Namespace == d.Namespace {
		aside.OwnerReferences = []metav1.OwnerReference{owner.Reference()}
	}
	if _, err := d.Secrets.Create(d.Ctx, aside, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w, and it cannot be set aside: %w", cause, err)
	}
	err := d.Secrets.Delete(d.Ctx, secret.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.UID}})
	if err != nil && apply.AnswerOf(err) != apply.Gone {
		return fmt.Errorf("%w, and it cannot be set aside: %w", cause, err)
	}
	if r, ok := FromMeta(secret); ok {
		d.Index.Remove(r)
	}
	d.Warn(api.EventRecordSetAside, fmt.Sprintf("Release record %s cannot be decoded; it was moved to Secret %s, and the release continues without it", secret.Name, aside.Name))
	return fmt.Errorf("%w: %w", ErrStale, cause)
}

// RecoverPanic turns a panic into an error, and logs where it began. It must be deferred.
func RecoverPanic(err *error) { //nolint:gocritic // a deferred call sets the result
	if r := recover(); r != nil { //nolint:revive // it is called by defer itself
		*err = fmt.Errorf("internal error: %v", r)
		log.Log.Error(*err, "panic", "stack", string(debug.Stack()))
	}
}
