package annotations

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParseDependsOn(t *testing.T) {
	database := Dependency{GroupKind: schema.GroupKind{Group: "a.com", Kind: "Database"}, Name: "main"}
	away := database
	away.Namespace = "shop"
	service := Dependency{GroupKind: schema.GroupKind{Kind: "Service"}, Name: "web.1"}
	for _, test := range []struct {
		value string
		want  []Dependency
	}{
		{"", nil},
		{" ", nil},
		{"Database.a.com/main", []Dependency{database}},
		{"Database.a.com/shop/main", []Dependency{away}},
		{"Service/web.1", []Dependency{service}},
		{" Database.a.com/main ,Service/web.1,\nDatabase.a.com/shop/main", []Dependency{database, service, away}},
	} {
		got, err := ParseDependsOn(test.value)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", test.value, err, diff)
		}
		for _, item := range got {
			if again, err := ParseDependsOn(item.String()); err != nil || !cmp.Equal(again, []Dependency{item}) {
				t.Errorf("%s is parsed as %v, %v", item, again, err)
			}
		}
	}
}

func TestParseDependsOn_RejectsMalformedItems(t *testing.T) {
	for value, item := range map[string]string{
		"main":                              `"main"`,
		"Database.a.com/main,":              `""`,
		",Database.a.com/main":              `""`,
		"Database.a.com/":                   `"Database.a.com/"`,
		"/main":                             `"/main"`,
		"Database.a.com//main":              `"Database.a.com//main"`,
		"Database.a.com/b.c/main":           `"Database.a.com/b.c/main"`,
		"Database.a.com/a/b/main":           `"Database.a.com/a/b/main"`,
		"Database.A.com/main":               `"Database.A.com/main"`,
		"Data base.a.com/main":              `"Data base.a.com/main"`,
		"Service/web, Database.a.com/Main ": `"Database.a.com/Main"`,
		"Service/web Service/api":           `"Service/web Service/api"`,
	} {
		got, err := ParseDependsOn(value)
		if err == nil || !strings.HasPrefix(err.Error(), item+": expected <kind>.<group>/<name>") || got != nil {
			t.Errorf("%q: %v, %v, want an error about %s", value, got, err, item)
		}
	}
	if _, err := ParseDependsOn(strings.TrimSuffix(strings.Repeat("Service/web,", 64), ",")); err != nil {
		t.Errorf("64 items: %v", err)
	}
	if _, err := ParseDependsOn(strings.TrimSuffix(strings.Repeat("Service/web,", 65), ",")); err == nil || err.Error() != "65 items: expected at most 64" {
		t.Errorf("65 items: %v", err)
	}
}
