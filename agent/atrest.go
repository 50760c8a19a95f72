package agent

// quietLooks is how many looks at the repository without news it takes until the
// agent is at rest: what the news have caused has ended by then, or waits.
const quietLooks = 2

// atRest gives memory back, once, when nothing is under way any more: an agent at
// rest allocates next to nothing, so that nothing else would (the runtime keeps
// half as much again as it uses).
type atRest struct {
	quiet    int
	giveBack func()
}

func (a *atRest) looked(news bool) {
	if news {
		a.quiet = 0
		return
	}
	if a.quiet++; a.quiet == quietLooks {
		a.giveBack()
	}
}
