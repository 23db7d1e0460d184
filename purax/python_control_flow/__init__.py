"""Python control flow on traced values.

A function that asks for the truth of a traced value is rewritten from its source and traced again, after what the
first attempt changed was put back.

1. Statements become calls: the blocks of an `if` or a loop become nested functions that share the variables of their
   function, all of which are closure cells (`converter`).
2. State is a heap: before a block is recorded, `heap` takes a picture of every mutable object that the running
   functions can reach. Afterwards it is compared, whatever changed is described, and put back.
3. Sides are merged in place (`merging`): objects stay the same objects, arrays and numbers become results of a
   `cond`. A loop carries what a recorded step was seen to change (`loops`). NumPy arrays become buffers (`buffers`).
4. What cannot be merged forks (`paths`): the function is done again from its beginning, once for each side of the
   decision that it comes from, as the two branches of a `cond`. Every object then is what plain Python makes of it.
   Paths are bounded; past the bound the first conflict is an error, with the line of the branch and of the change.

No handler of the user's sees these exceptions: forks and failures do not derive from `Exception`, and an error about
a traced value that an `except` swallowed is noticed when the function returns.
"""
