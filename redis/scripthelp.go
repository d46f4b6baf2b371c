package redis

func scriptHelpCommand(c *client, _ [][]byte) {
	c.help("SCRIPT",
		"DEBUG (YES|SYNC|NO)",
		"    There is no debugger: only NO is accepted.",
		"EXISTS <sha1> [<sha1> ...]",
		"    Which of the scripts the server has: 1 or 0 for each.",
		"FLUSH [ASYNC|SYNC]",
		"    Forget all scripts.",
		"KILL",
		"    End the script that runs, unless it has written.",
		"LOAD <script>",
		"    Compile a script, and keep it for EVALSHA.")
}

func functionHelpCommand(c *client, _ [][]byte) {
	c.help("FUNCTION",
		"DELETE <library-name>",
		"    Delete a library.",
		"DUMP",
		"    All libraries as bytes, for FUNCTION RESTORE.",
		"FLUSH [ASYNC|SYNC]",
		"    Delete all libraries.",
		"KILL",
		"    End the function that runs, unless it has written.",
		"LIST [LIBRARYNAME <pattern>] [WITHCODE]",
		"    The libraries and their functions.",
		"LOAD [REPLACE] <code>",
		"    Load a library.",
		"RESTORE <payload> [FLUSH|APPEND|REPLACE]",
		"    Load what DUMP has returned. FLUSH deletes all other libraries before, REPLACE those of",
		"    the same names.",
		"STATS",
		"    Which function runs, and how many there are.")
}
