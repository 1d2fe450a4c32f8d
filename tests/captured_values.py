"""Ways in which a kernel can read a value that is not among its arguments, and the module that reads one value in all of them.

A way is a definition (of ``H``, from the value ``V``), an expression that is ``V`` again, and a statement that makes it ``W``.
Each is read by a kernel itself, by a function and a macro that it calls, through a closure variable, and by its factory.
"""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple


class Way(NamedTuple):
    """One way to read a value.

    Attributes:
        name: its name.
        define: statements that store the value ``V`` in ``H`` (and in names that begin with ``H``).
        read: an expression that reads it.
        change: statements that change it to ``W``; empty if that is impossible in the process.
        kept: whether a kernel that reads it in this way is stored for other processes.
        plain: whether a kernel's own text may have the expression; otherwise functions and factories read it.
    """

    name: str
    define: str
    read: str
    change: str = ""
    kept: bool = True
    plain: bool = True


NUMBERS = [
    Way("float", "H = V", "H", "H = W"),
    Way("int", "H = int(V)", "H", "H = int(W)"),
    Way("bool", "H = V == 2", "2.0 if H else 1.0", "H = W == 2"),
    Way("complex", "H = complex(0, V)", "H.imag", "H = complex(0, W)"),
    Way("text", "H = str(V)", "float(H)", "H = str(W)"),
    Way("bytes", "H = b'%d' % int(V)", "int(H)", "H = b'%d' % int(W)"),
    Way("None or not", "H = None if V == 1 else 2", "1.0 if H is None else 2.0", "H = None if W == 1 else 2"),
    Way("sign of zero", "H = 0.0 if V == 1 else -0.0", "1.0 if str(H) == '0.0' else 2.0", "H = 0.0 if W == 1 else -0.0"),
    Way("fraction", "import fractions\nH = fractions.Fraction(int(V), 1)", "float(H)", "H = fractions.Fraction(int(W), 1)"),
    Way("decimal", "import decimal\nH = decimal.Decimal(str(V))", "float(H)", "H = decimal.Decimal(str(W))", kept=False),
    Way("timedelta", "import datetime\nH = datetime.timedelta(seconds=V)",
        "H.total_seconds()", "H = datetime.timedelta(seconds=W)", kept=False),
    Way("int of a subclass", "class Hc(int): pass\nH = Hc(V)", "float(H)", "H = Hc(W)"),
    Way("float of a subclass", "class Hc(float): pass\nH = Hc(V)", "H + 0.0", "H = Hc(W)"),
    Way("subclass of float that says otherwise", """
class Hc(float):
    def __repr__(self): return 'x'
H = Hc(V)""", "H + 0.0", "H = Hc(W)"),
    Way("subclass of int that equals all", """
class Hc(int):
    def __eq__(self, other): return True
    def __hash__(self): return 1
H = Hc(V)""", "float(H)", "H = Hc(W)"),
]

CONTAINERS = [
    Way("tuple", "H = (V,)", "H[0]", "H = (W,)"),
    Way("list", "H = [V]", "H[0]", "H[0] = W"),
    Way("dict", "H = {'a': V}", "H['a']", "H['a'] = W"),
    Way("key of a dict", "H = {V: 0}", "max(H)", "H.clear(); H[W] = 0"),
    Way("order of a dict", "H = dict.fromkeys([V, 3 - V])", "list(H)[0]", "H = dict.fromkeys([W, 3 - W])"),
    Way("set", "H = {V}", "max(H)", "H.clear(); H.add(W)"),
    Way("frozenset", "H = frozenset({V})", "max(H)", "H = frozenset({W})"),
    Way("set of members", """
import enum
class He(enum.Enum):
    A = 1
    B = 2
H = {He(int(V))}""", "2.0 if He.B in H else 1.0", "H = {He(int(W))}"),
    Way("range", "H = range(int(V))", "H.stop", "H = range(int(W))"),
    Way("slice", "H = slice(int(V))", "H.stop", "H = slice(int(W))"),
    Way("nested", "H = {'a': [({'b': V},)]}", "H['a'][0][0]['b']", "H['a'][0][0]['b'] = W"),
    Way("list in itself", "H = [V]\nH.append(H)", "H[1][1][0]", "H[0] = W"),
    Way("bytearray", "H = bytearray([int(V)])", "H[0]", "H[0] = int(W)", kept=False),
    Way("array.array", "import array\nH = array.array('d', [V])", "H[0]", "H[0] = W", kept=False),
    Way("memoryview", "H = memoryview(bytearray([int(V)]))", "H[0]", "H[0] = int(W)", kept=False),
    Way("factory of a defaultdict", "import collections\nH = collections.defaultdict(functools.partial(float, V))",
        "H.copy()['a']", "H.default_factory = functools.partial(float, W)"),
    Way("lambda of a defaultdict", """
import collections
Hv = V
H = collections.defaultdict(lambda: Hv)""", "H.copy()['a']", "Hv = W"),
    Way("item of a defaultdict", "import collections\nH = collections.defaultdict(int, a=V)", "H['a']", "H['a'] = W"),
    Way("Counter", "import collections\nH = collections.Counter(a=int(V))", "H['a']", "H['a'] = int(W)"),
    Way("OrderedDict", "import collections\nH = collections.OrderedDict(a=V)", "H['a']", "H['a'] = W"),
    Way("order of an OrderedDict", "import collections\nH = collections.OrderedDict.fromkeys([V, 3 - V])",
        "list(H)[0]", "H.move_to_end(3 - W)"),
    Way("ChainMap", "import collections\nH = collections.ChainMap({}, {'a': V})", "H['a']", "H.maps[1]['a'] = W"),
    Way("deque", "import collections\nH = collections.deque([V])", "H[0]", "H[0] = W"),
    Way("length of a deque", "import collections\nH = collections.deque(maxlen=int(V))",
        "H.maxlen", "H = collections.deque(maxlen=int(W))"),
    Way("UserDict", "import collections\nH = collections.UserDict(a=V)", "H['a']", "H['a'] = W"),
    Way("UserList", "import collections\nH = collections.UserList([V])", "H[0]", "H[0] = W"),
    Way("mapping proxy", """
import types
Hd = {'a': V}
H = types.MappingProxyType(Hd)""", "H['a']", "Hd['a'] = W"),
    Way("values of a dict", "Hd = {'a': V}\nH = Hd.values()", "max(H)", "Hd['a'] = W", kept=False),
    Way("namespace", "import types\nH = types.SimpleNamespace(a=V)", "H.a", "H.a = W"),
    Way("subclass of namespace", """
import types
class Hc(types.SimpleNamespace): pass
H = Hc(a=V)""", "H.a", "H.a = W"),
    Way("item of a subclass of dict", "class Hc(dict): pass\nH = Hc(a=V)", "H['a']", "H['a'] = W"),
    Way("item of a subclass that hides it", """
class Hc(dict):
    def items(self): return ()
H = Hc(a=V)""", "H['a']", "H['a'] = W"),
    Way("element of a subclass that hides it", """
class Hc(list):
    def __iter__(self): return iter(())
H = Hc([V])""", "H[0]", "H[0] = W"),
    Way("default of a subclass of dict", """
class H(dict):
    def __missing__(self, key): return HD
HD = V
Hi = H()""", "Hi['a']", "HD = W"),
    Way("append of a subclass of list", """
class H(list):
    def append(self, item): return HD
HD = V
Hi = H()""", "Hi.append(1)", "HD = W"),
    Way("attribute of a subclass of dict", """
class Hc(dict): pass
H = Hc()
H.scale = V""", "H.scale", "H.scale = W"),
    Way("attribute of a subclass of list", """
class Hc(list): pass
H = Hc()
H.scale = V""", "H.scale", "H.scale = W"),
    Way("attribute of a subclass of tuple", """
class Hc(tuple): pass
H = Hc()
H.scale = V""", "H.scale", "H.scale = W"),
    Way("attribute of a subclass of set", """
class Hc(set): pass
H = Hc()
H.scale = V""", "H.scale", "H.scale = W"),
    Way("attribute of a subclass of frozenset", """
class Hc(frozenset): pass
H = Hc()
H.scale = V""", "H.scale", "H.scale = W"),
    Way("attribute of a subclass of float", """
class Hc(float): pass
H = Hc(1.5)
H.scale = V""", "H.scale", "H.scale = W"),
    Way("attribute of a subclass of int", """
class Hc(int): pass
H = Hc(3)
H.scale = V""", "H.scale", "H.scale = W"),
    Way("attribute of a subclass of str", """
class Hc(str): pass
H = Hc('a')
H.scale = V""", "H.scale", "H.scale = W"),
    Way("attribute of a subclass of bytes", """
class Hc(bytes): pass
H = Hc(b'a')
H.scale = V""", "H.scale", "H.scale = W"),
    Way("attribute of a subclass of complex", """
class Hc(complex): pass
H = Hc(1j)
H.scale = V""", "H.scale", "H.scale = W"),
]

ENUMS = [
    Way("value of a member", """
import enum
class H(enum.Enum):
    A = V""", "H.A.value"),
    Way("member of an IntEnum", """
import enum
class H(enum.IntEnum):
    A = int(V)""", "H.A"),
    Way("member of a Flag", """
import enum
class H(enum.Flag):
    A = int(V)""", "H.A.value"),
    Way("member of an IntFlag", """
import enum
class H(enum.IntFlag):
    A = int(V)
    B = 8""", "(H.A | H.B) - 8"),
    Way("member as a value", """
import enum
class He(enum.Enum):
    A = V
H = He.A""", "H.value"),
    Way("member of a mixed enum", """
import enum
class He(float, enum.Enum):
    A = V
H = He.A""", "H + 0.0"),
    Way("which member", """
import enum
class He(enum.Enum):
    A = 1.0
    B = 2.0
H = He(V)""", "H.value", "H = He(W)"),
    Way("attribute of a member", """
import enum
class H(enum.Enum):
    A = 1
    def __init__(self, _):
        self.scale = V""", "H.A.scale", "H.A.scale = W"),
    Way("member by its name", """
import enum
class H(enum.Enum):
    A = V""", "H['A'].value"),
    Way("member by its value", """
import enum
class H(enum.Enum):
    A = (1, V)
    B = (2, 3 - V)""", "list(H)[0].value[1]"),
    Way("member by a value that was added", """
import enum
class H(enum.Enum):
    A = 1.0
    B = 2.0
H._value2member_map_[9] = H(V)""", "H(9).value", "H._value2member_map_[9] = H(W)"),
    Way("property of a member", """
import enum
class H(enum.Enum):
    A = 1
    @property
    def scale(self): return HD
HD = V""", "H.A.scale", "HD = W"),
    Way("functional enum", "import enum\nH = enum.Enum('H', {'A': V})", "H.A.value"),
    Way("member in a dict", """
import enum
class He(enum.Enum):
    A = V
H = {'a': He.A}""", "H['a'].value"),
    Way("key of a member", """
import enum
class He(enum.Enum):
    A = 1
H = {He.A: V}""", "H[He.A]", "H[He.A] = W"),
    Way("attribute of an enum", """
import enum
class H(enum.Enum):
    A = 1
H.scale = V""", "H.scale", "H.scale = W"),
]

CLASSES = [
    Way("attribute of an instance", """
class Hc: pass
H = Hc()
H.scale = V""", "H.scale", "H.scale = W"),
    Way("attribute of a class", "class H:\n    scale = V", "H.scale", "H.scale = W"),
    Way("inherited attribute", "class Hb: scale = V\nclass H(Hb): pass", "H.scale", "Hb.scale = W"),
    Way("attribute of the class of an instance", "class Hc: scale = V\nH = Hc()", "H.scale", "Hc.scale = W"),
    Way("attribute of an inner class", """
class H:
    class Inner:
        scale = V""", "H.Inner.scale", "H.Inner.scale = W"),
    Way("slot", """
class Hc: __slots__ = ('scale',)
H = Hc()
H.scale = V""", "H.scale", "H.scale = W"),
    Way("inherited slot", """
class Hb: __slots__ = ('scale',)
class Hc(Hb): __slots__ = ()
H = Hc()
H.scale = V""", "H.scale", "H.scale = W"),
    Way("private slot", """
class Hc:
    __slots__ = ('__scale',)
    def __init__(self, scale): self.__scale = scale
    def read(self): return self.__scale
H = Hc(V)""", "H.read()", "H.__init__(W)"),
    Way("slot of two names", """
class Hb: __slots__ = ('scale',)
class Hc(Hb): __slots__ = ('scale',)
H = Hc()
H.scale = 7.0
Hb.scale.__set__(H, V)
def Hr(): return Hb.scale.__get__(H)""", "Hr()", "Hb.scale.__set__(H, W)"),
    Way("property", """
class Hc:
    @property
    def scale(self): return self.held
H = Hc()
H.held = V""", "H.scale", "H.held = W"),
    Way("property that reads a global", """
class Hc:
    @property
    def scale(self): return HD
HD = V
H = Hc()""", "H.scale", "HD = W"),
    Way("replaced property", """
class Hc: scale = property(lambda self: HD)
HD = V
H = Hc()""", "H.scale", "Hc.scale = property(lambda self: 1.0)"),
    Way("cached property", """
class Hc:
    @functools.cached_property
    def scale(self): return HD
HD = V
H = Hc()""", "H.scale"),
    Way("descriptor", """
class Hd:
    def __get__(self, one, kind): return self.scale
class Hc: scale = Hd()
vars(Hc)['scale'].scale = V
H = Hc()""", "H.scale", "vars(Hc)['scale'].scale = W"),
    Way("descriptor of a class", """
class Hd:
    def __get__(self, one, kind): return HD
class H: scale = Hd()
HD = V""", "H.scale", "HD = W"),
    Way("data descriptor", """
class Hd:
    def __get__(self, one, kind): return HD
    def __set__(self, one, value): pass
class Hc: scale = Hd()
HD = V
H = Hc()
vars(H)['scale'] = 7.0""", "H.scale", "HD = W"),
    Way("method", """
class Hc:
    def read(self): return self.scale
H = Hc()
H.scale = V""", "H.read()", "H.scale = W"),
    Way("class method", """
class H:
    scale = V
    @classmethod
    def read(cls): return cls.scale""", "H.read()", "H.scale = W"),
    Way("static method", """
class H:
    @staticmethod
    def read(): return HD
HD = V""", "H.read()", "HD = W"),
    Way("method of a base class", """
class Hb:
    def read(self): return HD
class Hc(Hb):
    def read(self): return super().read()
HD = V
H = Hc()""", "H.read()", "HD = W"),
    Way("__getattr__", """
class Hc:
    def __getattr__(self, name): return HD
HD = V
H = Hc()""", "H.scale", "HD = W"),
    Way("__getattribute__", """
class Hc:
    def __getattribute__(self, name): return HD if name == 'scale' else object.__getattribute__(self, name)
HD = V
H = Hc()""", "H.scale", "HD = W"),
    Way("__getitem__", """
class Hc:
    def __getitem__(self, key): return HD
HD = V
H = Hc()""", "H[0]", "HD = W"),
    Way("__call__", """
class Hc:
    def __call__(self): return HD
HD = V
H = Hc()""", "H()", "HD = W"),
    Way("__float__", """
class Hc:
    def __float__(self): return HD
HD = V
H = Hc()""", "float(H)", "HD = W"),
    Way("__bool__", """
class Hc:
    def __bool__(self): return HD == 2
HD = V
H = Hc()""", "2.0 if H else 1.0", "HD = W"),
    Way("__len__", """
class Hc:
    def __len__(self): return int(HD)
HD = V
H = Hc()""", "len(H)", "HD = W"),
    Way("__contains__", """
class Hc:
    def __contains__(self, item): return HD == 2
HD = V
H = Hc()""", "2.0 if 1 in H else 1.0", "HD = W"),
    Way("__radd__", """
class Hc:
    def __radd__(self, other): return HD
HD = V
H = Hc()""", "1.0 + H", "HD = W"),
    Way("__eq__", """
class Hc:
    def __eq__(self, other): return HD == 2
    __hash__ = None
HD = V
H = Hc()""", "2.0 if H == 1 else 1.0", "HD = W"),
    Way("__class_getitem__", """
class H:
    def __class_getitem__(cls, key): return HD
HD = V""", "H[0]", "HD = W"),
    Way("__init_subclass__", """
class Hb:
    def __init_subclass__(cls): cls.scale = V
class H(Hb): pass""", "H.scale", "H.scale = W"),
    Way("__dict__ of an instance", """
class Hc: pass
H = Hc()
H.scale = V""", "H.__dict__['scale']", "H.scale = W"),
    Way("__doc__ of a class", "class H: pass\nH.__doc__ = str(V)", "float(H.__doc__)", "H.__doc__ = str(W)"),
    Way("__name__ of a class", "class H: pass\nH.__name__ = str(V)", "float(H.__name__)", "H.__name__ = str(W)"),
    Way("base of a class", """
class Ha: scale = 1.0
class Hb: scale = 2.0
class Hx: pass
class H(Hx): pass
H.__bases__ = (Ha if V == 1 else Hb,)""", "H.scale", "H.__bases__ = (Ha if W == 1 else Hb,)"),
    Way("class of an instance", """
class Ha: scale = 1.0
class Hb: scale = 2.0
H = Ha() if V == 1 else Hb()""", "H.scale", "H.__class__ = Ha if W == 1 else Hb"),
    Way("is an instance", """
class Ha: pass
class Hb(Ha): pass
class Hc: pass
H = Hc() if V == 1 else Hb()""", "2.0 if isinstance(H, Ha) else 1.0", "H = Hc() if W == 1 else Hb()"),
    Way("registered subclass", """
import abc
class Ha(abc.ABC): pass
class Hb: pass
H = Hb()
if V == 2: Ha.register(Hb)""", "2.0 if isinstance(H, Ha) else 1.0"),
    Way("registered subclass of a library's class", """
import collections.abc
class Hb: pass
H = Hb()
if V == 2: collections.abc.Sequence.register(Hb)
Hs = collections.abc.Sequence""", "2.0 if isinstance(H, Hs) else 1.0"),
    Way("attribute of an abstract class", "import abc\nclass H(abc.ABC): scale = V", "H.scale", "H.scale = W"),
    Way("attribute of a metaclass", "class Hm(type): scale = V\nclass H(metaclass=Hm): pass", "H.scale", "Hm.scale = W"),
    Way("property of a metaclass", """
class Hm(type):
    @property
    def scale(cls): return HD
HD = V
class H(metaclass=Hm): pass""", "H.scale", "HD = W"),
    Way("__getattr__ of a metaclass", """
class Hm(type):
    def __getattr__(cls, name): return HD
HD = V
class H(metaclass=Hm): pass""", "H.scale", "HD = W"),
    Way("__instancecheck__ of a metaclass", """
class Hm(type):
    def __instancecheck__(cls, one): return HD == 2
HD = V
class H(metaclass=Hm): pass""", "2.0 if isinstance(1, H) else 1.0", "HD = W"),
    Way("protocol", """
import typing
@typing.runtime_checkable
class Hp(typing.Protocol):
    scale: float
class Hc: pass
H = Hc()
if V == 2: H.scale = 1""", "2.0 if isinstance(H, Hp) else 1.0", "vars(H).clear()"),
    Way("generic class", """
import typing
Ht = typing.TypeVar('Ht')
class H(typing.Generic[Ht]): scale = V""", "H.scale", "H.scale = W"),
    Way("argument of a type", "import typing\nH = typing.Literal[int(V)]", "H.__args__[0]", "H = typing.Literal[int(W)]"),
    Way("argument of a generic alias", "H = list[int if V == 1 else float]",
        "1.0 if H.__args__[0] is int else 2.0", "H = list[int if W == 1 else float]"),
    Way("named tuple", "import collections\nH = collections.namedtuple('H', 'scale')(V)", "H.scale", "H = type(H)(W)"),
    Way("default of a named tuple", "import collections\nH = collections.namedtuple('H', 'scale', defaults=(V,))",
        "H().scale", "H.__new__.__defaults__ = (W,)"),
    Way("typed named tuple", """
import typing
class Hc(typing.NamedTuple):
    scale: float
H = Hc(V)""", "H.scale", "H = Hc(W)"),
    Way("dataclass", """
@dataclasses.dataclass
class Hc:
    scale: float
H = Hc(V)""", "H.scale", "H.scale = W"),
    Way("frozen dataclass", """
@dataclasses.dataclass(frozen=True)
class Hc:
    scale: float
H = Hc(V)""", "H.scale", "H = Hc(W)"),
    Way("dataclass with slots", """
@dataclasses.dataclass(slots=True)
class Hc:
    scale: float
H = Hc(V)""", "H.scale", "H.scale = W"),
    Way("default of a dataclass", """
@dataclasses.dataclass
class H:
    scale: float = V""", "H().scale"),
    Way("factory of a dataclass", """
@dataclasses.dataclass
class H:
    scale: list = dataclasses.field(default_factory=lambda: [HD])
HD = V""", "H().scale[0]", "HD = W"),
    Way("metadata of a dataclass", """
@dataclasses.dataclass
class H:
    scale: int = dataclasses.field(default=0, metadata={'a': V})""", "dataclasses.fields(H)[0].metadata['a']"),
    Way("replaced dataclass", """
@dataclasses.dataclass
class Hc:
    scale: float
H = Hc(V)""", "dataclasses.replace(H).scale", "H.scale = W"),
    Way("made dataclass", "H = dataclasses.make_dataclass('H', [('scale', float, dataclasses.field(default=V))])", "H().scale"),
    Way("sentinel", "Ha, Hb = object(), object()\nH = Ha if V == 1 else Hb",
        "1.0 if H is Ha else 2.0", "H = Ha if W == 1 else Hb"),
    Way("one object twice", "Ha, Hb = [1], [1]\nH = Ha if V == 1 else Hb",
        "1.0 if H is Ha else 2.0", "H = Ha if W == 1 else Hb"),
    Way("exception", "H = ValueError(V)", "H.args[0]", "H.args = (W,)", kept=False),
]

FUNCTIONS = [
    Way("function", "def H(): return HD\nHD = V", "H()", "HD = W"),
    Way("function of a function", """
def Ha(): return HD
def H(): return Ha()
HD = V""", "H()", "HD = W"),
    Way("other function", """
def Ha(): return 1.0
def Hb(): return 2.0
H = Ha if V == 1 else Hb""", "H()", "H = Ha if W == 1 else Hb"),
    Way("lambda", "H = lambda: HD\nHD = V", "H()", "HD = W"),
    Way("attribute of a function", "def H(): return H.scale\nH.scale = V", "H()", "H.scale = W"),
    Way("attribute of a function alone", "def H(): pass\nH.scale = V", "H.scale", "H.scale = W"),
    Way("__name__ of a function", "def H(): pass\nH.__name__ = str(V)", "float(H.__name__)", "H.__name__ = str(W)"),
    Way("__doc__ of a function", "def H(): pass\nH.__doc__ = str(V)", "float(H.__doc__)", "H.__doc__ = str(W)"),
    Way("annotation of a function", "def H(a: V): pass", "H.__annotations__['a']", "H.__annotations__['a'] = W", kept=False),
    Way("default", "def H(a=V): return a", "H()", "H.__defaults__ = (W,)"),
    Way("default by name", "def H(*, a=V): return a", "H()", "H.__kwdefaults__['a'] = W"),
    Way("default that is a list", "def H(a=[V]): return a[0]", "H()", "H.__defaults__[0][0] = W"),
    Way("closure", """
def Ha(v):
    def inner(): return v
    return inner
H = Ha(V)""", "H()", "H = Ha(W)"),
    Way("changed closure", """
def Ha(v):
    def inner(): return v
    def put(new):
        nonlocal v
        v = new
    return inner, put
H, Hp = Ha(V)""", "H()", "Hp(W)"),
    Way("code of a function", """
def H(): return 1.0
def Hb(): return 2.0
if V == 2: H.__code__ = Hb.__code__""", "H()", "H.__code__ = (lambda: 1.0).__code__"),
    Way("decorator", """
def Hd(f):
    @functools.wraps(f)
    def inner(): return f() * HD
    return inner
@Hd
def H(): return 1.0
HD = V""", "H()", "HD = W"),
    Way("wrapped function", """
def Ha(): return HD
HD = V
@functools.wraps(Ha)
def H(): return Ha()""", "H.__wrapped__()", "HD = W"),
    Way("context manager", """
import contextlib
@contextlib.contextmanager
def Hm(): yield HD
HD = V
def H():
    with Hm() as v: return v""", "H()", "HD = W"),
    Way("partial", "def Ha(v): return v\nH = functools.partial(Ha, V)", "H()", "H = functools.partial(Ha, W)"),
    Way("partial by name", "def Ha(v): return v\nH = functools.partial(Ha, v=V)", "H()", "H.keywords['v'] = W"),
    Way("attribute of a partial", "H = functools.partial(float, 1)\nH.scale = V", "H.scale", "H.scale = W"),
    Way("partial of a partial", "def Ha(a, b): return a * b\nH = functools.partial(functools.partial(Ha, 1.0), V)",
        "H()", "H = functools.partial(functools.partial(Ha, 1.0), W)"),
    Way("partial method", """
class Hc:
    def read(self, v): return v
    scale = functools.partialmethod(read, V)
H = Hc()""", "H.scale()", "Hc.scale = functools.partialmethod(Hc.read, W)"),
    Way("bound method", """
class Hc:
    def read(self): return self.scale
Hi = Hc()
Hi.scale = V
H = Hi.read""", "H()", "Hi.scale = W"),
    Way("bound method in a dict", """
class Hc:
    def read(self): return self.scale
Hi = Hc()
Hi.scale = V
H = {'a': Hi.read}""", "H['a']()", "Hi.scale = W"),
    Way("bound method of a dict", "Hd = {'a': V}\nH = Hd.get", "H('a')", "Hd['a'] = W"),
    Way("special method of a list", "Hl = [V]\nH = Hl.__getitem__", "H(0)", "Hl[0] = W"),
    Way("method of a type", "H = str.upper if V == 1 else str.lower",
        "1.0 if H('a') == 'A' else 2.0", "H = str.upper if W == 1 else str.lower"),
    Way("function of a module", "import math\nH = math.floor if V == 1 else math.ceil",
        "H(1.5)", "H = math.floor if W == 1 else math.ceil"),
    Way("function of Python", "H = min if V == 1 else max", "float(H(1, 2))", "H = min if W == 1 else max"),
    Way("attrgetter", """
import operator
class Hc: a, b = 1.0, 2.0
H = operator.attrgetter('a' if V == 1 else 'b')""", "H(Hc)", "H = operator.attrgetter('a' if W == 1 else 'b')"),
    Way("itemgetter", "import operator\nH = operator.itemgetter(int(V))",
        "H((0.0, 1.0, 2.0))", "H = operator.itemgetter(int(W))"),
    Way("methodcaller", "import operator\nH = operator.methodcaller('get', 'a', V)",
        "H({})", "H = operator.methodcaller('get', 'a', W)"),
    Way("methodcaller by name", """
import operator
class Hc:
    def read(self, v): return v
H = operator.methodcaller('read', v=V)""", "H(Hc())", "H = operator.methodcaller('read', v=W)"),
    Way("single dispatch", """
@functools.singledispatch
def H(one): return 7.0
@H.register
def Hi(one: int): return HD
HD = V""", "H(1)", "HD = W"),
    Way("registered function", """
@functools.singledispatch
def H(one): return 1.0
if V == 2: H.register(int, lambda one: 2.0)""", "H(1)", "H.register(int, lambda one: 1.0)"),
    Way("single dispatch of a method", """
class Hc:
    @functools.singledispatchmethod
    def read(self, one): return 7.0
    @read.register
    def _(self, one: int): return HD
HD = V
H = Hc()""", "H.read(1)", "HD = W"),
    Way("cached function", """
@functools.lru_cache
def H(): return HD
HD = V""", "H()", "HD = W\nH.cache_clear()"),
    Way("function that has stored a result", """
@functools.lru_cache
def H(): return HD
HD = V
H()
HD = 7.0""", "H()", "HD = W\nH.cache_clear()\nH()\nHD = 7.0", kept=False),
    Way("reduced", "import operator\nH = [1.0, V]", "functools.reduce(operator.mul, H)", "H[1] = W"),
    Way("macro", """
@T.macro
def Hm(y):
    T.fill(y, HD)
HD = V
def H(): return HD""", "H()", "HD = W"),
    Way("attribute of a macro", "@T.macro\ndef H(y):\n    T.fill(y, 1.0)\nH.scale = V", "H.scale", "H.scale = W"),
    Way("attribute of a single dispatch", "@functools.singledispatch\ndef H(one): return 1.0\nH.scale = V", "H.scale",
        "H.scale = W"),
    Way("attribute of a cached function", "@functools.lru_cache\ndef H(): return 1.0\nH.scale = V", "H.scale", "H.scale = W"),
    Way("attribute of a static method", "def Hs(): return 1.0\nHm = staticmethod(Hs)\nHm.scale = V\nclass H: read = Hm",
        "vars(H)['read'].scale", "Hm.scale = W", kept=False),
    Way("attribute of a factory", "@tilelang.jit\ndef H(): pass\nH.scale = V", "H.scale", "H.scale = W", kept=False),
    Way("generator", """
def Ha():
    while True: yield V
H = Ha()""", "next(H)", kept=False, plain=False),
    Way("iterator", "H = iter([V] * 9999)", "next(H)", kept=False, plain=False),
    Way("count", "import itertools\nH = itertools.repeat(V)", "next(H)", "H = itertools.repeat(W)", kept=False, plain=False),
    Way("comprehension", "H = [V]", "[one for one in H][0]", "H[0] = W", plain=False),
    Way("inner function", "H = V", "(lambda: (lambda: H)())()", "H = W", plain=False),
    Way("global of a name that is local elsewhere", """
H = V
def Hr():
    H = 7.0
    def inner(): return H
    def outer():
        global H
        return H
    inner()
    return outer()""", "Hr()", "H = W"),
    Way("class body", """
H = V
def Hr():
    class Inner:
        scale = H
    return Inner.scale""", "Hr()", "H = W"),
    Way("annotation as a text", "def H(): pass\nH.scale = V", "H.scale", "H.scale = W"),
]

ARRAYS = [
    Way("array", "H = np.array([V])", "float(H[0])", "H[0] = W"),
    Way("array without axes", "H = np.array(V)", "float(H)", "H[...] = W"),
    Way("array of objects", "H = np.array([[V], None], dtype=object)", "H[0][0]", "H[0][0] = W"),
    Way("array of records", "H = np.array([(V, 1)], dtype=[('a', 'f4'), ('b', 'f4')])", "float(H['a'][0])", "H['a'][0] = W"),
    Way("names of an array of records",
        "H = np.array([(1, 2)], dtype=[('a', 'f4'), ('b', 'f4')] if V == 1 else [('b', 'f4'), ('a', 'f4')])",
        "float(H['a'][0])", "H = np.array([(1, 2)], dtype=[('a', 'f4'), ('b', 'f4')])"),
    Way("array of bfloat16", "import ml_dtypes\nH = np.array([V], dtype=ml_dtypes.bfloat16)", "float(H[0])", "H[0] = W"),
    Way("type of a small float",
        "import ml_dtypes\n"
        "H = np.zeros(1, np.uint8).view(ml_dtypes.float8_e4m3fn if V == 1 else ml_dtypes.float8_e5m2)",
        "1.0 if 'e4m3' in str(H.dtype) else 2.0", "H = H.view(ml_dtypes.float8_e4m3fn)"),
    Way("strides of an array", "H = np.zeros((2, 2), order='C' if V == 1 else 'F')",
        "1.0 if H.flags.c_contiguous else 2.0", "H = np.zeros((2, 2))"),
    Way("shape of an array", "H = np.zeros((int(V), 6 // int(V)))", "H.shape[0]", "H = np.zeros((int(W), 6 // int(W)))"),
    Way("attribute of an array", """
class Hc(np.ndarray): pass
H = np.zeros(1).view(Hc)
H.scale = V""", "H.scale", "H.scale = W"),
    Way("masked array", "H = np.ma.array([2.0], mask=[V == 1])", "float(H.filled(1.0)[0])", "H.mask = [W == 1]"),
    Way("scalar of NumPy", "H = np.float32(V)", "float(H)", "H = np.float32(W)"),
    Way("long double", "H = np.longdouble(V)", "float(H)", "H = np.longdouble(W)"),
    Way("type of a scalar", "H = np.int64(1) if V == 1 else np.int32(1)", "1.0 if H.itemsize == 8 else 2.0", "H = np.int64(1)"),
    Way("record", "H = np.array([(V,)], dtype=[('a', 'f4')])[0]", "float(H['a'])", "H['a'] = W"),
    Way("element type", "H = np.dtype('i1' if V == 1 else 'i2')", "H.itemsize", "H = np.dtype('i1')"),
    Way("metadata of an element type", "H = np.dtype('f4', metadata={'a': V})",
        "H.metadata['a']", "H = np.dtype('f4', metadata={'a': W})"),
    Way("class of NumPy", "H = np.int8 if V == 1 else np.int16", "H(1).itemsize", "H = np.int8"),
    Way("function of NumPy", "H = np.minimum if V == 1 else np.maximum", "float(H(1, 2))", "H = np.minimum"),
    Way("vectorised function", """
def Ha(one): return HD
HD = V
H = np.vectorize(Ha)""", "float(H(1))", "HD = W"),
    Way("function as a ufunc", """
def Ha(one): return HD
HD = V
H = np.frompyfunc(Ha, 1, 1)""", "H(1)", "HD = W", kept=False),
    Way("array in an object", """
class Hc: pass
H = Hc()
H.held = [np.array([V])]""", "float(H.held[0][0])", "H.held[0][0] = W"),
    Way("element type of the language", "H = T.float16 if V == 2 else T.int8",
        "1.0 if str(H) == 'int8' else 2.0", "H = T.int8"),
]

MODULES = [
    Way("name of a module", "import conf", "conf.X", "conf.X = W"),
    Way("name of a module from it", "from conf import X as H", "H", "H = W"),
    Way("function of the user's module", "import conf", "conf.read()", "conf.X = W"),
    Way("class of a module", "import conf", "conf.Config.scale", "conf.Config.scale = W"),
    Way("object of a module", "import conf", "conf.config.scale", "conf.config.scale = W"),
    Way("module of a package", "import folder.conf2 as H", "H.X", "H.X = W"),
    Way("chain of modules", "import folder.conf2", "folder.conf2.X", "folder.conf2.X = W"),
    Way("name that a module makes", "import folder as H", "H.made", "H.HIDDEN = W"),
    Way("name that was not there", """
import folder as H
if V == 2: H.late = 2.0
def Hr():
    try: return H.late
    except AttributeError: return 1.0""", "Hr()", "H.late = 1.0", plain=False),
    Way("module as an argument", "import conf\ndef H(module): return module.X", "H(conf)", "conf.X = W", kept=False),
    Way("module in a list", "import conf\nH = [conf]", "H[0].X", "conf.X = W", kept=False),
    Way("__dict__ of a module", "import conf", "conf.__dict__['X']", "conf.X = W", kept=False),
    Way("import where it runs", """
import conf
def H():
    import conf
    return conf.X""", "H()", "conf.X = W", kept=False),
    Way("import of a name where it runs", """
import conf
def H():
    from conf import X
    return X""", "H()", "conf.X = W", kept=False),
    Way("getattr", "import conf", "getattr(conf, 'X')", "conf.X = W", kept=False),
    Way("attrgetter of a module", "import conf, operator\nH = operator.attrgetter('X')", "H(conf)", "conf.X = W", kept=False),
    Way("vars", "import conf", "vars(conf)['X']", "conf.X = W", kept=False),
    Way("globals", "H = V", "globals()['H']", "H = W", kept=False, plain=False),
    Way("__globals__", "H = V\ndef Hf(): pass", "Hf.__globals__['H']", "H = W", kept=False),
    Way("__closure__", "def Ha(v): return lambda: v\nH = Ha(V)", "H.__closure__[0].cell_contents", "H = Ha(W)", kept=False),
    Way("__builtins__", "import builtins\nbuiltins.tilelang_scale = V",
        "tilelang_scale", "builtins.tilelang_scale = W", kept=False),
    Way("replaced function of Python", """
import builtins
def Hr(): return ascii(1)
builtins.ascii = lambda one: V""", "Hr()", "builtins.ascii = lambda one: W", kept=False),
    Way("eval", "H = V", "eval('H')", "H = W", kept=False, plain=False),
    Way("sys.modules", "import sys, conf", "sys.modules['conf'].X", "conf.X = W", kept=False),
    Way("importlib", "import importlib, conf", "importlib.import_module('conf').X", "conf.X = W", kept=False),
    Way("name put into a library", "import math\nmath.tilelang_scale = V", "math.tilelang_scale", "math.tilelang_scale = W"),
    Way("name put into this package", "T.tilelang_scale = V", "T.tilelang_scale", "T.tilelang_scale = W"),
    Way("replaced function of a library", """
import math
Hm = math
math.tilelang_f = math.floor if V == 1 else math.ceil""",
        "Hm.tilelang_f(1.5)", "math.tilelang_f = math.floor if W == 1 else math.ceil"),
    Way("function put into a library", """
import math
math.tilelang_g = lambda: HD
HD = V""", "math.tilelang_g()", "HD = W"),
    Way("class put into a library", """
import math
class H: scale = V
math.tilelang_c = H""", "math.tilelang_c.scale", "H.scale = W"),
]

OUTSIDE = [
    Way("environment", "import os\nos.environ['TLV'] = str(V)",
        "float(os.environ['TLV'])", "os.environ['TLV'] = str(W)", kept=False),
    Way("environment with get", "import os\nos.environ['TLV'] = str(V)",
        "float(os.environ.get('TLV'))", "os.environ['TLV'] = str(W)", kept=False),
    Way("getenv", "import os\nos.environ['TLV'] = str(V)", "float(os.getenv('TLV'))", "os.environ['TLV'] = str(W)", kept=False),
    Way("environ by its name", """
import os
from os import environ as H
os.environ['TLV'] = str(V)""", "float(H['TLV'])", "os.environ['TLV'] = str(W)", kept=False),
    Way("getenv by its name", """
import os
from os import getenv as H
os.environ['TLV'] = str(V)""", "float(H('TLV'))", "os.environ['TLV'] = str(W)", kept=False),
    Way("get of environ", """
import os
os.environ['TLV'] = str(V)
H = os.environ.get""", "float(H('TLV'))", "os.environ['TLV'] = str(W)", kept=False),
    Way("arguments of the process", "import sys\nsys.argv.append(V)", "sys.argv[-1]", "sys.argv[-1] = W", kept=False),
    Way("arguments by their name", "from sys import argv as H\nH.append(V)", "H[-1]", "H[-1] = W"),
    Way("file", "H = 'value.txt'\nopen(H, 'w').write(str(V))",
        "float(open(H).read())", "open(H, 'w').write(str(W))", kept=False),
    Way("path", """
import pathlib
H = pathlib.Path('value.txt')
H.write_text(str(V))""", "float(H.read_text())", "H.write_text(str(W))", kept=False),
    Way("open file", "open('value.txt', 'w').write(str(V))\nH = open('value.txt')",
        "float((H.seek(0), H.read())[1])", "open('value.txt', 'w').write(str(W))", kept=False, plain=False),
    Way("chance", "import random\nrandom.random = lambda: V", "random.random()", "random.random = lambda: W", kept=False),
    Way("weak reference", """
import weakref
class Hc: pass
Hi = Hc()
Hi.scale = V
H = weakref.ref(Hi)""", "H().scale", "Hi.scale = W"),
    Way("weak proxy", """
import weakref
class Hc: pass
Hi = Hc()
Hi.scale = V
H = weakref.proxy(Hi)""", "H.scale", "Hi.scale = W", kept=False),
    Way("weak method", """
import weakref
class Hc:
    def read(self): return self.scale
Hi = Hc()
Hi.scale = V
H = weakref.WeakMethod(Hi.read)""", "H()()", "Hi.scale = W"),
    Way("weak dictionary", """
import weakref
class Hc: pass
Hi = Hc()
Hi.scale = V
H = weakref.WeakValueDictionary(a=Hi)""", "H['a'].scale", "Hi.scale = W", kept=False),
    Way("context variable", """
import contextvars
H = contextvars.ContextVar('H', default=7.0)
H.set(V)""", "H.get()", "H.set(W)", kept=False),
    Way("thread's own", """
import threading
H = threading.local()
H.scale = V""", "H.scale", "H.scale = W", kept=False),
    Way("number of C", "import ctypes\nH = ctypes.c_double(V)", "H.value", "H.value = W", kept=False),
    Way("struct of C", """
import ctypes
class Hc(ctypes.Structure): _fields_ = [('a', ctypes.c_double)]
H = Hc(V)""", "H.a", "H.a = W", kept=False),
    Way("subclass of a class in C", """
import random
class Hc(random.Random): pass
H = Hc()
H.scale = V""", "H.scale", "H.scale = W", kept=False),
    Way("arguments of a parser", "import argparse\nH = argparse.Namespace(scale=V)", "H.scale", "H.scale = W", kept=False),
    Way("compiled expression", "import re\nH = re.compile('a' if V == 1 else 'b')",
        "1.0 if H.match('a') else 2.0", "H = re.compile('a')"),
]

WAYS = [*NUMBERS, *CONTAINERS, *ENUMS, *CLASSES, *FUNCTIONS, *ARRAYS, *MODULES, *OUTSIDE]

PLACES = {
    "kernel": "T.fill(y, {read})",
    "function": "T.fill(y, read())",
    "macro": "put(y)",
    "closure": "T.fill(y, {held})",
    "factory": "T.fill(y, value)",
}

_HEAD = '''
import dataclasses, functools, sys
import numpy as np
import tilelang_npu as tilelang, tilelang_npu.language as T
V = float(sys.argv[1])
RESULTS = {}
'''

_KERNEL = '''
def make():
    {local}
    @T.prim_func
    def main(Y: T.Tensor((8,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            y = T.alloc_ub((8,), "float32")
            {fill}
            T.copy(y, Y)
    return main
'''

CONF = '''
import sys
X = float(sys.argv[1])
def read(): return X
class Config: scale = X
config = Config()
config.scale = X
'''

FOLDER = '''
import sys
HIDDEN = float(sys.argv[1])
def __getattr__(name):
    if name == "made": return HIDDEN
    raise AttributeError(name)
'''


def places_of(way: Way) -> list[str]:
    """Returns the places at which the value is read in a way."""
    return [place for place in PLACES if way.plain or place in ("function", "factory")]


def module_of(way: Way, place: str) -> str:
    """The text of a module with a factory ``make`` that reads the value in a way at a place, and ``change(W)``."""
    parts = [_HEAD.strip(), way.define.strip()]
    local = "pass"
    if place == "function":
        parts.append(f"def read():\n    return {way.read}")
    if place == "macro":
        parts.append(f"@T.macro\ndef put(y):\n    T.fill(y, {way.read})")
    if place == "closure":
        local = "held = H" if re.search(r"\bH\b", way.read) else "pass"
    if place == "factory":
        local = f"value = {way.read}"
    held = re.sub(r"\bH\b", "held", way.read) if local == "held = H" else way.read
    parts.append(_KERNEL.format(local=local, fill=PLACES[place].format(read=way.read, held=held)).strip())
    names = sorted(set(re.findall(r"\bH\w*\b(?= *=[^=])", way.change)))
    body = ([f"global {', '.join(names)}"] if names else []) + (way.change.strip().splitlines() or ["pass"])
    parts.append("def change(W):\n" + textwrap.indent("\n".join(body), "    "))
    return "\n".join(parts) + "\n"
