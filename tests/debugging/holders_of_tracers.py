"""Functions that keep a traced value in each way there is, for `test_leaks`."""

stored = []
last = None


class Model:
    pass


model = Model()


def in_list(x):
    stored.append(x * 2)
    return x


def in_global(x):
    global last
    last = x * 2
    return x


def in_attribute(x):
    model.state = {"w": x + 1}
    return x


def make():
    kept = None

    def in_closure(x):
        nonlocal kept
        kept = x + 1
        return x + (0 if kept is None else 0)

    return in_closure


in_closure = make()


def forget():
    global last
    last = None
    stored.clear()
    model.__dict__.clear()
