package signing

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

var (
	// ErrUnsigned marks content without a signature, or with the signature of a key
	// that the operator does not have.
	ErrUnsigned = errors.New("the release record has no signature of this operator")
	// ErrForged marks content that does not match its signature.
	ErrForged = errors.New("the content of the release record does not match its signature")
)

// MinKey is the minimum length of a key in bytes.
const MinKey = 32

// Content is the content that a signature covers. It omits what the helm CLI changes
// without changing the release: status, description and the results of hooks.
type Content struct {
	Namespace string
	Release   string
	Revision  int
	// Owner is the UID of the custom resource.
	Owner string
	// Inputs are the digests of the inputs of the revision.
	Inputs []string
	// Chart is the name and the version of the chart.
	Chart string
	// Values is the digest of the values given to the chart.
	Values []byte
	// Manifest contains the objects without the hooks.
	Manifest string
	// Hooks are the sorted digests of the hooks.
	Hooks []string
}

// Keys holds the current key, and the previous key, whose signatures are still
// accepted. Its methods may be called concurrently. The zero value has no keys, signs
// nothing and accepts nothing.
type Keys struct {
	mu                sync.RWMutex
	current, previous *key
}

type key struct {
	// id identifies the key in signatures; it is not secret.
	id     string
	secret []byte
}

// Set replaces the keys. The previous key may be nil. If a key is shorter than MinKey,
// Set returns an error and changes nothing.
func (k *Keys) Set(current, previous []byte) error {
	if len(current) < MinKey {
		return fmt.Errorf("the signing key has %d bytes, expected at least %d", len(current), MinKey)
	}
	if previous != nil && len(previous) < MinKey {
		return fmt.Errorf("the previous signing key has %d bytes, expected at least %d", len(previous), MinKey)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current, k.previous = newKey(current), nil
	if previous != nil {
		k.previous = newKey(previous)
	}
	return nil
}

func newKey(secret []byte) *key {
	sum := sha256.Sum256(append([]byte("key id:"), secret...))
	return &key{id: hex.EncodeToString(sum[:4]), secret: append([]byte{}, secret...)}
}

// Sign returns the signature of content, which is a valid label value, or an empty
// string if there is no key.
func (k *Keys) Sign(content Content) string {
	k.mu.RLock()
	current := k.current
	k.mu.RUnlock()
	if current == nil {
		return ""
	}
	return current.sign(content)
}

// Current reports whether a signature names the current key. It does not verify the
// signature; it shows whether a record must be signed again.
func (k *Keys) Current(signature string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	id, _, _ := strings.Cut(signature, ".")
	return k.current != nil && id == k.current.id
}

// Verify returns nil if the current or the previous key signed the content. Otherwise
// the error is ErrUnsigned or ErrForged.
func (k *Keys) Verify(signature string, content Content) error {
	k.mu.RLock()
	keys := []*key{k.current, k.previous}
	k.mu.RUnlock()
	id, _, _ := strings.Cut(signature, ".")
	for _, known := range keys {
		if known == nil || known.id != id {
			continue
		}
		if !hmac.Equal([]byte(signature), []byte(known.sign(content))) {
			return ErrForged
		}
		return nil
	}
	return ErrUnsigned
}

var encoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// sign returns "<key id>.<HMAC-SHA256>", 61 characters.
func (k *key) sign(content Content) string {
	mac := hmac.New(sha256.New, k.secret)
	content.write(mac)
	return k.id + "." + strings.ToLower(encoding.EncodeToString(mac.Sum(nil)))
}

// write encodes content so that different content has different encodings: each string
// follows its length, and each list its number of items.
func (c Content) write(to io.Writer) {
	// Converting a string to bytes would copy it as a whole; the buffer avoids that.
	// Writes to a hash never fail.
	buffer := bufio.NewWriter(to)
	text := func(part string) {
		_, _ = buffer.WriteString(strconv.Itoa(len(part)) + ":")
		_, _ = buffer.WriteString(part)
	}
	list := func(parts []string) {
		text(strconv.Itoa(len(parts)))
		for _, part := range parts {
			text(part)
		}
	}
	text("chartwright.dev/record/1")
	text(c.Namespace)
	text(c.Release)
	text(strconv.Itoa(c.Revision))
	text(c.Owner)
	list(c.Inputs)
	text(c.Chart)
	text(string(c.Values))
	text(c.Manifest)
	list(c.Hooks)
	_ = buffer.Flush()
}
