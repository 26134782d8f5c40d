# SPDX-License-Identifier: BSD-3-Clause
"""Writes the table of stages.c: which function of which file is of which stage, by stages.map.

usage: make_stages.py NM OUTPUT MAP OBJECT...

An object is named after its source: lib/qp/liburoce_qp.a.p/run.c.o is of lib/qp/run.c, and
app/libtestroce.a.p/testroce_plan.c.o of app/testroce/plan.c.
"""
import fnmatch
import os
import re
import subprocess
import sys

# Functions that a sanitizer, or the count of coverage, adds to each object; and what arm64's objects mark code and data with.
ADDED = re.compile(r'(asan|hwasan|msan|tsan|sancov)\.module_[cd]tor|_sub_[DI]_[0-9_]+$|\$[xd]')


def source_of(path):
    """The source of an object file, from the project's root."""
    folder, name = os.path.split(path)
    room = os.path.dirname(folder)
    name = name.removesuffix('.o')
    # Meson flattens the folders of a source that stands below its target.
    if room == 'app':
        room, name = 'app/testroce', name.removeprefix('testroce_')
    return f'{room}/{name}'


def functions_of(nm, paths):
    """The functions that object files define: path, name, and whether others can name it. nm takes long to start."""
    listing = subprocess.run([nm, '--print-file-name', '--defined-only', '-P', *paths], check=True, capture_output=True,
                             text=True).stdout
    for line in listing.splitlines():
        path, rest = line.split(': ', 1)
        name, kind = rest.split()[:2]
        if kind in 'tTwW' and not ADDED.match(name):
            yield path, name, kind != 't'


def read_map(path):
    """The lines of a map: source, function, stage."""
    rules = []
    with open(path, encoding='ascii') as file:
        for line in file:
            words = line.split('#')[0].split()
            if words:
                rules.append((words[0], words[1] if len(words) == 3 else '*', words[-1]))
    return rules


def main():
    nm, output, map_path = sys.argv[1:4]
    rules = read_map(map_path)
    used, errors, rows = set(), [], {}
    for path, name, is_global in functions_of(nm, sys.argv[4:]):
        source = source_of(path)
        rule = next((i for i, (files, names, _) in enumerate(rules)
                     if fnmatch.fnmatchcase(source, files) and fnmatch.fnmatchcase(name, names)), None)
        if rule is None:
            errors.append(f'{source}: {name} has no stage in {map_path}')
            continue
        used.add(rule)
        # A name that is local to its file may stand in other files as well: those are told apart by the file's own name,
        # which is all that a program's table of symbols has of it.
        key = ('' if is_global else os.path.basename(source), name)
        stage = rules[rule][2]
        if rows.setdefault(key, stage) != stage:
            errors.append(f'{source}: {name} has another stage elsewhere, in a file of the same name')
    errors += [f'{map_path}: no function is of {" ".join(rule)}' for i, rule in enumerate(rules) if i not in used]
    if errors:
        sys.exit('\n'.join(errors))
    with open(output, 'w', encoding='ascii') as file:
        file.write('/* Made by make_stages.py. */\n#include "stages.h"\n\n'
                   'const struct stage_of_function stage_table[] = {\n')
        for (source, name), stage in sorted(rows.items()):
            file.write(f'\t{{"{source}", "{name}", STAGE_{stage}}},\n')
        file.write(f'}};\n\nconst size_t stage_table_count = {len(rows)};\n')


main()
