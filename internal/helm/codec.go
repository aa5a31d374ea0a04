package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"sync"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/records"
)

// maxRecord is the size at which the API server refuses a Secret.
const maxRecord = 1 << 20

// ErrTooLarge marks a release that does not fit into a Secret.
var ErrTooLarge = errors.New("the release is too large to be stored")

// ErrDamaged marks a record whose content cannot be read.
var ErrDamaged = errors.New("the release record is damaged")

// writers and readers are reused: a writer holds most of a megabyte, a reader
// forty kilobytes.
var (
	writers = pool[*gzip.Writer]{make: func() *gzip.Writer { return gzip.NewWriter(io.Discard) }}
	readers = pool[*gzip.Reader]{make: func() *gzip.Reader { return new(gzip.Reader) }}
)

// pool is a sync.Pool that knows what it holds.
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

// encode returns the Secret that holds a release, in Helm's format.
func encode(key string, rls *release.Release) (*corev1.Secret, error) {
	data, err := pack(rls)
	if err != nil {
		return nil, fmt.Errorf("encode release record %s: %w", key, err)
	}
	if len(data) > maxRecord {
		return nil, fmt.Errorf("%w: its manifest and values take %d KiB packed, a Secret holds %d KiB", ErrTooLarge, len(data)>>10, maxRecord>>10)
	}
	labels := maps.Clone(rls.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[records.LabelName] = rls.Name
	labels[records.LabelOwner] = records.OwnerHelm
	labels[records.LabelStatus] = rls.Info.Status.String()
	labels[records.LabelVersion] = strconv.Itoa(rls.Version)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: key, Labels: labels},
		Type:       records.SecretType,
		Data:       map[string][]byte{"release": data},
	}, nil
}

// pack returns what the Secret of a release holds: base64 of gzip of JSON. The
// chart's templates and files stay out of it: no command of Helm needs them
// later, and they are most of the size.
func pack(rls *release.Release) ([]byte, error) {
	stored := *rls
	if rls.Chart != nil {
		stored.Chart = &chart.Chart{Metadata: rls.Chart.Metadata, Values: rls.Chart.Values}
	}
	text, err := json.Marshal(&stored)
	if err != nil {
		return nil, err
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

// decode reads a record. The error is ErrDamaged where it cannot.
func decode(secret *corev1.Secret) (*release.Release, error) {
	packed, err := base64.StdEncoding.DecodeString(string(secret.Data["release"]))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, secret.Name, err)
	}
	reader := readers.get()
	defer readers.put(reader)
	if err := reader.Reset(bytes.NewReader(packed)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, secret.Name, err)
	}
	var rls release.Release
	if err := json.NewDecoder(reader).Decode(&rls); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, secret.Name, err)
	}
	if rls.Info == nil {
		return nil, fmt.Errorf("%w: %s: it has no info", ErrDamaged, secret.Name)
	}
	rls.Labels = maps.Clone(secret.Labels)
	for _, key := range driver.GetSystemLabels() {
		delete(rls.Labels, key)
	}
	return &rls, nil
}
