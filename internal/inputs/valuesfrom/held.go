package valuesfrom

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/inputs"
)

// The functions of this file except keep require the lock.

// keep keeps the parts of an object, or drops the object if they exceed the budget. The next
// call of content reads it again.
func (s *Store) keep(ref Ref, known *object, parts []*content) {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	if s.objects[ref] != known || slices.Equal(s.kept[ref], parts) {
		return
	}
	s.release(s.kept[ref])
	s.kept[ref] = parts
	if s.hold(parts, (*inputs.Budget).Charge).Message != "" {
		s.drop(ref)
	}
}

func (s *Store) drop(ref Ref) {
	s.release(s.kept[ref])
	delete(s.kept, ref)
	delete(s.objects, ref)
}

// replaceLast keeps the parts of Secrets in the values of a user for as long as messages could
// show them. It keeps the earlier parts instead if the new ones exceed the budget.
func (s *Store) replaceLast(user types.UID, parts []*content) error {
	before := s.last[user]
	s.releaseLast(user)
	refused := s.holdLast(user, parts, (*inputs.Budget).Charge)
	if refused.Message == "" {
		return nil
	}
	s.releaseLast(user)
	s.holdLast(user, before, func(budget *inputs.Budget, item inputs.Item, uid types.UID, bytes int) inputs.Refusal {
		budget.Set(item, uid, bytes)
		return inputs.Refusal{}
	})
	return fmt.Errorf("the Secrets among the sources of values are not used, because messages could show them: their content %s, "+
		"or delete custom resources that use them", refused.Message)
}

// charge is Budget.Charge, or Budget.Set without a refusal.
type charge func(*inputs.Budget, inputs.Item, types.UID, int) inputs.Refusal

func (s *Store) holdLast(user types.UID, parts []*content, charge charge) inputs.Refusal {
	s.last[user] = parts
	refused := s.hold(parts, charge)
	if len(parts) > 1 && refused.Message == "" {
		refused = charge(s.secret, itemOf(user, parts[0]), "", allSecrets(parts).weight())
	}
	return refused
}

func (s *Store) releaseLast(user types.UID) {
	s.release(s.last[user])
	for _, part := range s.last[user] {
		s.secret.Release(itemOf(user, part), "")
	}
	delete(s.last, user)
}

// hold charges each part once, and returns the first refusal.
func (s *Store) hold(parts []*content, charge charge) (refused inputs.Refusal) {
	for _, part := range parts {
		s.holders[part]++
		if s.holders[part] == 1 && refused.Message == "" {
			refused = charge(s.budgetOf(part), itemOf(part, part), "", part.weight())
		}
	}
	return refused
}

func (s *Store) release(parts []*content) {
	for _, part := range parts {
		s.holders[part]--
		if s.holders[part] == 0 {
			delete(s.holders, part)
			s.budgetOf(part).Release(itemOf(part, part), "")
		}
	}
}

func (s *Store) budgetOf(part *content) *inputs.Budget {
	if len(part.secrets) > 0 {
		return s.secret
	}
	return s.cached
}

// itemOf returns the item of a part or of the list of a user, in the namespace of a part.
func itemOf(of any, in *content) inputs.Item {
	return inputs.Item{Of: of, NamespacedName: types.NamespacedName{Namespace: in.namespace}}
}

// allSecrets returns the secrets of parts. It shares the list of a single part.
func allSecrets(parts []*content) (secrets Secrets) {
	if len(parts) == 1 {
		return slices.Clip(parts[0].secrets)
	}
	for _, part := range parts {
		secrets = append(secrets, part.secrets...)
	}
	return secrets
}
