package migrate

import "strings"

// numbered is a line of a file, from 1.
type numbered struct {
	number int
	text   string
}

// stage is a part of a Dockerfile: an instruction FROM, and what follows it.
type stage struct {
	numbered
	// from is an image, or the name of a stage before.
	from, name string
	// lines are the instructions, with the rest of those that have several lines.
	lines []numbered
}

// stagesOf returns the stages of a Dockerfile.
func stagesOf(text string) (stages []stage) {
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case strings.EqualFold(words[0], "FROM"):
			words = words[1:]
			for len(words) > 0 && strings.HasPrefix(words[0], "--") {
				words = words[1:]
			}
			one := stage{numbered: numbered{number, line}}
			if len(words) > 0 {
				one.from = words[0]
			}
			if len(words) == 3 && strings.EqualFold(words[1], "AS") {
				one.name = words[2]
			}
			stages = append(stages, one)
		case len(stages) > 0:
			last := &stages[len(stages)-1]
			last.lines = append(last.lines, numbered{number, line})
		}
	}
	return stages
}

// imageOf tells of each stage whether the image is made of it: of the last, and
// of those that it is made from.
func imageOf(stages []stage) []bool {
	made := make([]bool, len(stages))
	wanted := ""
	for i := len(stages) - 1; i >= 0; i-- {
		if i == len(stages)-1 || stages[i].name != "" && strings.EqualFold(stages[i].name, wanted) {
			made[i], wanted = true, stages[i].from
		}
	}
	return made
}
