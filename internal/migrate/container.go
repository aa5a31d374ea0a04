package migrate

import (
	"regexp"
	"strings"
)

// theirImage is what images of the operator-sdk's Helm operator are called.
var theirImage = regexp.MustCompile(`(?i)^\s*FROM\s+(?:--platform=\S+\s+)?(\S*helm-operator\S*)`)

// containerFindings tells what becomes of the Dockerfile.
func (p *Project) containerFindings() []Finding {
	f := finder{topic: topicProject}
	text, exists := p.files[dockerfile]
	if !exists {
		f.addf(ToDo, "", "there is no Dockerfile").Do = "write one"
		f.findings[0].Lines = p.newDockerfile()
		return f.findings
	}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		where := at(dockerfile, i+1)
		switch match := theirImage.FindStringSubmatch(line); {
		case match != nil:
			found := f.addf(ToDo, where, "the image is made from %s", match[1])
			found.Do = "make it from Chartwright's, by your registry and version; the other lines may stay"
			found.Lines = "- " + line + "\n+ ARG CHARTWRIGHT=chartwright:latest\n+ FROM ${CHARTWRIGHT}\n"
		case len(words) == 0:
		case strings.EqualFold(words[0], "RUN"):
			f.addf(Breaks, where, "%s: Chartwright's image has no shell and no packages, so that nothing can be run in it", strings.TrimSpace(line)).
				Do = "run it in a stage of its own, and COPY --from it what comes of it"
		case strings.EqualFold(words[0], "ENTRYPOINT"), strings.EqualFold(words[0], "CMD"):
			found := f.addf(ToDo, where, "%s: the image's own are ENTRYPOINT [\"/chartwright\"] and CMD [\"run\"]", strings.TrimSpace(line))
			found.Do = "remove the line"
			found.Lines = "- " + line + "\n"
		}
	}
	if len(f.findings) == 0 {
		f.addf(Works, dockerfile, "it is made from another image than the operator-sdk's")
	}
	return f.findings
}

func (p *Project) newDockerfile() string {
	text := "ARG CHARTWRIGHT=chartwright:latest\nFROM ${CHARTWRIGHT}\nCOPY watches.yaml ./\n"
	if p.charts != "" {
		text += "COPY " + p.charts + " ./" + p.charts + "/\n"
	}
	return text
}

// makefileFindings tells which lines of the Makefile run the old operator.
func (p *Project) makefileFindings() []Finding {
	f := finder{topic: topicProject}
	text, exists := p.files[makefile]
	if !exists {
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		recipe := strings.TrimSpace(strings.TrimLeft(line, "\t@"))
		if !strings.HasPrefix(line, "\t") || !strings.Contains(recipe, "helm-operator") && !strings.HasPrefix(recipe, "$(HELM_OPERATOR)") {
			continue
		}
		if strings.HasSuffix(recipe, " run") || strings.Contains(recipe, " run ") {
			found := f.addf(ToDo, at(makefile, i+1), "the operator is run on this machine by %s", recipe)
			found.Do = "run Chartwright instead"
			found.Lines = "- " + line + "\n+ \tchartwright run\n"
			continue
		}
	}
	if len(f.findings) == 0 {
		f.addf(Works, makefile, "install, deploy and their counterparts work on config/ as before")
	}
	return f.findings
}
