"""The escape corpus: small programs that really try to get out of the sandbox, run by exec at every tier there is.

`corpus/` holds the attacks, by family, as data. `outside/` is the world that they are to get at: files, a process,
listeners, shared memory, keys, a terminal. It is looked at before and after each attack, from outside; what an attack
says of itself counts only where the kernel's answer is all there is to see, or where a secret is in its output.
`part.py` runs attacks as one user, by one of the `ways.py`; `starting.py` starts it, as root and as an ordinary user;
`gaps.py` lists what a tier does not contain, with the reason. An attack that gets out and is not listed fails the test,
and so does one that is listed and does not. That each is real is shown at tier 0, or in a bare process, where that
hurts nobody.

Every day each attack is made once at tier 2, by root or by an ordinary user, and some of them at the other tiers; with
HANDRAIL_DEEP=1 all of them, by both.
"""
