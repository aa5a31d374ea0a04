package valuesfrom

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/inputs"
)

// held are the parts of Secrets in the values of a user in a namespace. They are kept for as
// long as messages could show them.
type held struct {
	namespace string
	parts     []*content
}

func allSecrets(parts []*content) (secrets Secrets) {
	for _, part := range parts {
		secrets = append(secrets, part.secrets...)
	}
	return secrets
}

// replaceHeld keeps the earlier parts if the new ones exceed the budget. It requires the lock.
func (s *Store) replaceHeld(user types.UID, parts held) error {
	before := s.last[user]
	s.release(user)
	refused := s.hold(user, parts, s.budget.Charge)
	if refused.Message == "" {
		return nil
	}
	s.release(user)
	s.hold(user, before, func(item inputs.Item, uid types.UID, bytes int) inputs.Refusal {
		s.budget.Set(item, uid, bytes)
		return inputs.Refusal{}
	})
	return fmt.Errorf("the Secrets among the sources of values are not used, because messages could show them: their content %s", refused.Message)
}

// hold charges each part once, and the list of the user's secrets. It returns the first
// refusal, and requires the lock.
func (s *Store) hold(user types.UID, all held, charge func(inputs.Item, types.UID, int) inputs.Refusal) (refused inputs.Refusal) {
	list := 0
	for _, part := range all.parts {
		list += len(part.secrets) * perSecret
		if s.holders[part]++; s.holders[part] == 1 && refused.Message == "" {
			refused = charge(all.item(part), "", part.secrets.weight())
		}
	}
	if refused.Message == "" {
		refused = charge(all.item(user), "", list)
	}
	s.last[user] = all
	return refused
}

// release requires the lock.
func (s *Store) release(user types.UID) {
	all := s.last[user]
	for _, part := range all.parts {
		if s.holders[part]--; s.holders[part] == 0 {
			delete(s.holders, part)
			s.budget.Release(all.item(part), "")
		}
	}
	s.budget.Release(all.item(user), "")
	delete(s.last, user)
}

// item returns the item of a part or of the list of a user.
func (h held) item(of any) inputs.Item {
	return inputs.Item{Of: of, NamespacedName: types.NamespacedName{Namespace: h.namespace}}
}
