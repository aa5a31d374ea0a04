package migrate

import (
	"regexp"
	"strings"
)

// theirImage is what images of the operator-sdk's Helm operator are called.
var theirImage = regexp.MustCompile(`(?i)helm-operator`)

// containerFindings tells what becomes of the Dockerfile.
func (p *Project) containerFindings() []Finding {
	f := finder{topic: topicProject}
	text, exists := p.files[dockerfile]
	if !exists {
		f.addf(ToDo, "", "there is no Dockerfile").Do = "write one"
		f.findings[0].Lines = p.newDockerfile()
		return f.findings
	}
	stages := stagesOf(text)
	image := imageOf(stages)
	for i, stage := range stages {
		if !image[i] {
			continue
		}
		for _, line := range stage.lines {
			f.instruction(line)
		}
		if theirImage.MatchString(stage.from) {
			found := f.addf(ToDo, at(dockerfile, stage.number), "the image is made from %s", stage.from)
			found.Do = "make it from Chartwright's, by your registry and version; the other lines may stay"
			found.Lines = "- " + stage.text + "\n+ ARG CHARTWRIGHT=chartwright:latest\n+ FROM ${CHARTWRIGHT}\n"
		}
	}
	if len(f.findings) == 0 {
		f.addf(Works, dockerfile, "it is made from another image than the operator-sdk's")
	}
	return f.findings
}

// instruction tells of one that cannot be in an image made from Chartwright's.
func (f *finder) instruction(line numbered) {
	where, text := at(dockerfile, line.number), strings.TrimSpace(line.text)
	switch strings.ToUpper(strings.Fields(text)[0]) {
	case "RUN":
		f.addf(Breaks, where, "%s: Chartwright's image has no shell and no packages, so that nothing can be run in it", text).
			Do = "run it in a stage of its own, and COPY --from it what comes of it"
	case "ENTRYPOINT", "CMD":
		found := f.addf(ToDo, where, "%s: the image's own are ENTRYPOINT [\"/chartwright\"] and CMD [\"run\"]", text)
		found.Do = "remove the line"
		found.Lines = "- " + line.text + "\n"
	}
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
