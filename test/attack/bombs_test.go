package attack

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// bomb is an attack on the memory, the CPU or the time of the operator.
type bomb struct {
	name string
	// throw starts the attack. What it starts in the background ends with the
	// context of the test.
	throw func(a *arena)
}

// TestBombs: whatever one tenant writes to custom resources, Secrets,
// ConfigMaps and other objects of its namespace, the same process continues to serve
// other tenants.
func TestBombs(t *testing.T) {
	a := newArena(t)
	for _, bomb := range specBombs() {
		a.throw(bomb)
	}
	// Actions of custom resources that are gone end, so that the next attacks start at once.
	a.operator.Stop()
	a.operator.Start()
	for _, bomb := range objectBombs() {
		a.throw(bomb)
	}
}

// throw makes an attack.
func (a *arena) throw(bomb bomb) {
	a.attack(bomb.name, func(a *arena) {
		others := a.watchOthers()
		bomb.throw(a)
		others.served(few)
		a.intact()
	})
}

// specBombs are attacks by an author, who can only write custom resources.
// Unless noted otherwise, their sizes are below the limit for a spec.
func specBombs() []bomb {
	return []bomb{
		{"Aliases", notes(9, func(i int) string {
			return "x\n" + []string{
				laughs(9), merges(12),
				"  a: &a {" + pairs(10_000) + "}\n  b:\n" + strings.Repeat("  - ? *a\n    : *a\n", 5_000),
				"  !!str &k " + strings.Repeat("k", 100_000) + ": &v !!binary " + strings.Repeat("QUFB", 5_000) + "\n  b: [" + strings.Repeat("*k,*v,", 10_000) + "]",
			}[i%4]
		})},
		{"DeepYAML", notes(6, func(i int) string { return "x\n  a: " + strings.Repeat([]string{"[", "- ", "{a: "}[i%3], 50_000) })},
		{"WideLists", notes(20, func(int) string { return "x\n  a: [" + strings.Repeat("1,", 110_000) + "1]" })},
		{"WideListsByTpl", many(8, func(a *arena, i int) *unstructured.Unstructured {
			return harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Set("unquoted", `[{{ repeat 195000 "{}," }}{}]`).Obj()
		})},
		{"WideListsAboveTheLimit", notes(20, func(int) string { return "x\n  a: [" + strings.Repeat("1,", 400_000) + "1]" })},
		{"Unicode", notes(20, func(i int) string {
			return strings.Repeat(string([]rune{0x2028, 0x85, 0xfeff, 0x202e, 0x1f4a9, 0x10ffff, rune(0x300 + i)}), 10_000)
		})},
		{"LookupsWithoutEnd", texts(8, `{{ range until 1000000 }}{{ $_ := lookup "v1" "ConfigMap" $.Release.Namespace (print "a" .) }}{{ end }}`)},
		{"ValuesThatContainThemselves", texts(8,
			`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $d }}`, `{{ $d := dict }}{{ $_ := set $d "a" (list $d $d) }}{{ toYaml $d }}`,
			`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ deepCopy $d }}`, `{{ printf "%*d" 1000000000 1 }}`,
		)},
		{"LongKeysAndDeepSpecs", specs(20, func(i int) string {
			return []string{
				fmt.Sprintf(`{"extra":{%q:1}}`, strings.Repeat("k", 200_000)),
				`{"extra":{"a":` + strings.Repeat(`[`, 4_000) + strings.Repeat(`]`, 4_000) + `}}`,
			}[i%2]
		})},
		{"SpecsAtTheLimit", specs(30, func(int) string { return `{"extra":{"a":[` + strings.Repeat(`{},`, 49_000) + `{}]}}` })},
		{"SpecsOfOtherTypes", specs(8, func(i int) string {
			return []string{
				`{"note":null,"text":null}`, `{"note":{"a":[]},"text":[]}`, `{"note":1e308,"text":9223372036854775807}`, `{"text":{"a":1}}`,
				`{"Release":{"Name":"x"},"global":{"a":1},"Chart":null}`, `{"extra":null,"note":["a"]}`, `{"note":"","text":""}`, `{"__proto__":{},"":{"":""},".":1,"a.b":{"/":"~"}}`,
			}[i]
		})},
		{"LargeTemplates", texts(12,
			strings.Repeat("{{1}}", 45_000),
			"{{"+strings.Repeat("(", 100_000)+"1"+strings.Repeat(")", 100_000)+"}}",
			strings.Repeat("{{if 1}}", 15_000)+strings.Repeat("{{end}}", 15_000))},
		{"ChainsOfTpl", texts(20,
			`{{ $t := "{{ tpl . . }}" }}{{ range until 40 }}{{ $t = printf "{{ tpl %q $ }}" $t }}{{ end }}{{ tpl $t . }}`,
			`{{ $t := "x" }}{{ range until 30 }}{{ $t = tpl (printf "%s%s" $t $t) $ }}{{ end }}`)},
		{"Regexes", texts(20,
			`{{ $s := repeat 200000 "a" }}{{ range until 100 }}{{ $x := regexReplaceAll "(a|aa)*(a|aa)*(a|aa)*b" $s "x" }}{{ $y := regexFindAll "a{1,500}" $s -1 }}{{ end }}`,
			`{{ range $i := until 1000 }}{{ $x := regexMatch (printf "(((a{10}){10}){9}%d){1}" $i) "a" }}{{ end }}`)},
		{"DeepValues", texts(20,
			`{{ $s := repeat 900000 "[" }}{{ $x := fromJsonArray $s }}{{ $y := fromJson (printf "{\"a\":%s" $s) }}{{ fromYaml $s }}`,
			`{{ $x := list 1 }}{{ range until 900 }}{{ $x = list $x $x }}{{ end }}{{ toYaml $x }}{{ toJson $x }}{{ deepCopy $x }}`,
			`{{ $x := list 1 }}{{ range until 900 }}{{ $x = list $x }}{{ end }}{{ range until 2000 }}{{ $y := $x | toYaml | fromYamlArray | toJson | fromJsonArray | deepCopy }}{{ end }}`)},
		{"Cryptography", texts(20,
			`{{ range until 300 }}{{ $a := bcrypt "x" }}{{ $b := htpasswd "a" "b" }}{{ $c := derivePassword 1 "long" "a" "b" "c" }}{{ $d := genCA "a" 1 }}{{ end }}`)},
		{"LongTexts", texts(20,
			`{{ $s := repeat 15000000 "x" }}{{ range until 100 }}{{ $a := sha256sum $s }}{{ $b := $s | upper | snakecase | b64enc }}{{ $c := splitList "x" $s | sortAlpha }}{{ end }}`,
			`{{ $a := untilStep 0 2000000000 1 }}`, `{{ randAlphaNum 2000000000 }}`, `{{ nindent 2000000000 "x" }}`, `{{ seq 0 2000000000 }}`)},
		{"LongErrorsAndOutput", texts(20,
			`{{ fail (repeat 15000000 "x") }}`, `{{ $s := repeat 1000000 "\u2028" }}{{ range until 15 }}{{ $s }}{{ end }}`)},
		{"Redefinitions", texts(20,
			strings.Repeat(`{{ define "x" }}{{ end }}`, 9_000)+`{{ range until 400000 }}{{ include "x" $ }}{{ end }}`)},
	}
}

// notes creates custom resources whose note is inserted into the manifest
// unchanged.
func notes(n int, note func(i int) string) func(a *arena) {
	return many(n, func(a *arena, i int) *unstructured.Unstructured {
		return harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Set("note", note(i)).Obj()
	})
}

// texts creates custom resources with one of these templates each.
func texts(n int, texts ...string) func(a *arena) {
	return many(n, func(a *arena, i int) *unstructured.Unstructured {
		return harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Set("text", texts[i%len(texts)]).Obj()
	})
}

// specs creates custom resources with specs in JSON.
func specs(n int, spec func(i int) string) func(a *arena) {
	return func(a *arena) {
		a.many(n, func(i int) error { return create(a.author, a.plain, fmt.Sprintf("bomb-%d", i), spec(i)) })
	}
}

// many creates custom resources in parallel.
func many(n int, cr func(a *arena, i int) *unstructured.Unstructured) func(a *arena) {
	return func(a *arena) {
		a.many(n, func(i int) error { return a.tryCreate(a.author, cr(a, i)) })
	}
}

// laughs returns levels of anchors, each with ten aliases of the previous
// level.
func laughs(levels int) string {
	var text strings.Builder
	text.WriteString("  l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range levels {
		fmt.Fprintf(&text, "  l%d: &l%d [%s*l%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*l%d,", i), 9), i)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// merges returns levels of maps. Each level merges the previous one ten times.
func merges(levels int) string {
	var text strings.Builder
	text.WriteString("  m0: &m0 {" + pairs(1_000) + "}\n")
	for i := range levels {
		fmt.Fprintf(&text, "  m%d: &m%d\n", i+1, i+1)
		for j := range 10 {
			fmt.Fprintf(&text, "    k%d: {<<: [%s*m%d], more: 1}\n", j, strings.Repeat(fmt.Sprintf("*m%d,", i), 9), i)
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func pairs(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "k%d: v,", i)
	}
	return strings.TrimSuffix(text.String(), ",")
}

// annotated returns a custom resource with annotations of Chartwright.
func (a *arena) annotated(name string, annotations map[string]string) *unstructured.Unstructured {
	cr := harness.MakeCR(a.plain, name).Obj()
	cr.SetAnnotations(annotations)
	return cr
}

// requestsOf returns annotations that request an action once.
var requestsOf = []string{
	api.AnnotationRollbackTo, api.AnnotationReconcile, api.AnnotationForce, api.AnnotationTest, api.AnnotationAbort,
}
