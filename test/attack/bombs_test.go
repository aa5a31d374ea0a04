package attack

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// bomb is an attack on the memory, the processor or the time of the operator.
type bomb struct {
	name string
	// throw begins the attack. What it starts in the background ends with the
	// context of the test.
	throw func(a *arena)
}

// TestBombs: whatever one tenant writes into custom resources, Secrets,
// ConfigMaps and other objects of its namespace, other tenants are served in time
// by the same process.
func TestBombs(t *testing.T) {
	a := newArena(t)
	for _, bomb := range append(specBombs(), objectBombs()...) {
		a.attack(bomb.name, func(a *arena) {
			others := a.watchOthers()
			bomb.throw(a)
			others.served(few)
			a.intact()
		})
	}
}

// specBombs are those of an author, who writes custom resources and nothing else.
func specBombs() []bomb {
	return []bomb{
		{"AliasesOfAliases", notes(1, func(int) string { return "x\n" + laughs(9) })},
		{"MergedAliases", notes(3, func(int) string { return "x\n" + merges(12) })},
		{"AliasesAsKeys", notes(3, func(int) string {
			return "x\n  a: &a {" + pairs(20_000) + "}\n  b:\n" + strings.Repeat("  - ? *a\n    : *a\n", 5_000)
		})},
		{"TagsAndAnchorsInKeys", notes(3, func(int) string {
			return "x\n  " + strings.Repeat("!!str &k ", 1) + strings.Repeat("k", 100_000) + ": &v !!binary " + strings.Repeat("QUFB", 50_000) + "\n  b: [" + strings.Repeat("*k,*v,", 20_000) + "]"
		})},
		{"DeepYAML", notes(5, func(int) string { return "x\n  a: " + strings.Repeat("[", 400_000) })},
		{"DeepYAMLByIndent", notes(5, func(int) string { return "x\n  a: " + strings.Repeat("- ", 400_000) + "x" })},
		{"WideLists", notes(20, func(int) string { return "x\n  a: [" + strings.Repeat("1,", 400_000) + "1]" })},
		{"Unicode", notes(20, func(i int) string {
			return strings.Repeat(string([]rune{0x2028, 0x85, 0xfeff, 0x202e, 0x1f4a9, 0x10ffff, rune(0x300 + i)}), 20_000)
		})},
		{"LongKeys", specs(10, func(int) string { return fmt.Sprintf(`{"extra":{%q:1}}`, strings.Repeat("k", 1_000_000)) })},
		{"DeepSpec", specs(10, func(int) string {
			return `{"extra":{"a":` + strings.Repeat(`[`, 4_000) + strings.Repeat(`]`, 4_000) + `}}`
		})},
		{"SpecsBelowTheBound", specs(30, func(int) string { return `{"extra":{"a":[` + strings.Repeat(`{},`, 49_000) + `{}]}}` })},
		{"SpecsOfOtherTypes", specs(8, func(i int) string {
			return []string{
				`{"note":null,"text":null}`, `{"note":{"a":[]},"text":[]}`, `{"note":1e308,"text":9223372036854775807}`, `{"text":{"a":1}}`,
				`{"Release":{"Name":"x"},"global":{"a":1},"Chart":null}`, `{"extra":null,"note":["a"]}`, `{"note":"","text":""}`, `{"__proto__":{},"":{"":""},".":1,"a.b":{"/":"~"}}`,
			}[i]
		})},
		{"LongTemplates", texts(10, strings.Repeat("{{1}}", 150_000))},
		{"DeepTemplates", texts(10, "{{"+strings.Repeat("(", 300_000)+"1"+strings.Repeat(")", 300_000)+"}}")},
		{"DeepConditions", texts(10, strings.Repeat("{{if 1}}", 60_000)+strings.Repeat("{{end}}", 60_000))},
		{"ChainsOfTpl", texts(20, `{{ $t := "{{ tpl . . }}" }}{{ range until 40 }}{{ $t = printf "{{ tpl %q $ }}" $t }}{{ end }}{{ tpl $t . }}`)},
		{"TplThatDoubles", texts(20, `{{ $t := "x" }}{{ range until 30 }}{{ $t = tpl (printf "%s%s" $t $t) $ }}{{ end }}`)},
		{"Regexes", texts(20, `{{ $s := repeat 200000 "a" }}{{ range until 100 }}{{ $x := regexReplaceAll "(a|aa)*(a|aa)*(a|aa)*b" $s "x" }}{{ $y := regexFindAll "a{1,500}" $s -1 }}{{ end }}`)},
		{"LargeRegexes", texts(20, `{{ range $i := until 1000 }}{{ $x := regexMatch (printf "((((a{10}){10}){10}%d){1}){1}" $i) "a" }}{{ end }}`)},
		{"DeepJSON", texts(20, `{{ $s := repeat 900000 "[" }}{{ $x := fromJsonArray $s }}{{ $y := fromJson (printf "{\"a\":%s" $s) }}{{ fromYaml $s }}`)},
		{"DeepValues", texts(20, `{{ $x := list 1 }}{{ range until 900 }}{{ $x = list $x $x }}{{ end }}{{ toYaml $x }}{{ toJson $x }}{{ deepCopy $x }}`)},
		{"Secrets", texts(20, `{{ range until 300 }}{{ $a := bcrypt "x" }}{{ $b := htpasswd "a" "b" }}{{ $c := derivePassword 1 "long" "a" "b" "c" }}{{ $d := genCA "a" 1 }}{{ end }}`)},
		{"LongTexts", texts(20, `{{ $s := repeat 15000000 "x" }}{{ range until 100 }}{{ $a := sha256sum $s }}{{ $b := $s | upper | snakecase | reverse | b64enc }}{{ $c := splitList "x" $s | sortAlpha }}{{ end }}`)},
		{"LongNumbers", texts(20, `{{ $a := untilStep 0 2000000000 1 }}{{ $b := randAlphaNum 2000000000 }}{{ $c := nindent 2000000000 "x" }}{{ seq 0 2000000000 }}`)},
		{"LongErrors", texts(20, `{{ fail (repeat 15000000 "x") }}`)},
		{"LongOutput", texts(20, `{{ $s := repeat 1000000 "\u2028" }}{{ range until 15 }}{{ $s }}{{ end }}`)},
		{"Redefinitions", texts(20, strings.Repeat(`{{ define "x" }}{{ include "x" . }}{{ end }}`, 10_000)+`{{ range until 100000 }}{{ include "x" $ }}{{ end }}`)},
		{"ManyObjects", notes(20, func(i int) string {
			var text strings.Builder
			text.WriteString("x\n")
			for j := range 400 {
				fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-%d-%d}\ndata: {a: b\n", i, j)
				text.WriteString("}\n")
			}
			return text.String() + "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: last-" + fmt.Sprint(i) + "\ndata:\n  a: b"
		})},
	}
}

// notes throws custom resources whose note is inserted into the manifest as it is.
func notes(n int, note func(i int) string) func(a *arena) {
	return many(n, func(a *arena, i int) *unstructured.Unstructured {
		return harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Set("note", note(i)).Obj()
	})
}

// texts throws custom resources with a template.
func texts(n int, text string) func(a *arena) {
	return many(n, func(a *arena, i int) *unstructured.Unstructured {
		return harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Set("text", text).Obj()
	})
}

// specs throws custom resources with specs in JSON.
func specs(n int, spec func(i int) string) func(a *arena) {
	return func(a *arena) {
		a.many(n, func(i int) error { return create(a.author, a.plain, fmt.Sprintf("bomb-%d", i), spec(i)) })
	}
}

// many throws custom resources at once.
func many(n int, cr func(a *arena, i int) *unstructured.Unstructured) func(a *arena) {
	return func(a *arena) {
		a.many(n, func(i int) error { return a.tryCreate(a.author, cr(a, i)) })
	}
}

// laughs has levels of anchors, each of which holds ten aliases of the one
// before.
func laughs(levels int) string {
	var text strings.Builder
	text.WriteString("  l0: &l0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range levels {
		fmt.Fprintf(&text, "  l%d: &l%d [%s*l%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*l%d,", i), 9), i)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// merges has levels of maps, each of which merges the one before ten times.
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

// annotated is a custom resource with annotations of the operator's.
func (a *arena) annotated(name string, annotations map[string]string) *unstructured.Unstructured {
	cr := harness.MakeCR(a.plain, name).Obj()
	cr.SetAnnotations(annotations)
	return cr
}

// requestsOf are annotations that ask for something once.
var requestsOf = []string{
	api.AnnotationRollbackTo, api.AnnotationReconcile, api.AnnotationForce, api.AnnotationTest, api.AnnotationAbort,
}
