#!/usr/bin/env python3
"""Write replctl/types/data/*.tsv from the catalogs of a running PostgreSQL 17 server.

    .ci/generate_types.py 'host=/tmp port=5417 user=postgres dbname=postgres'

The connection string is libpq's.  The script reads the rows with psql.  Types, functions and operators
have their names in the catalogs (`int4`, `_int4`), so that people can read and compare the files.
"""

import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "replctl" / "types" / "data"

BUILTIN_TYPE = """
    t.typnamespace = 'pg_catalog'::regnamespace AND t.typrelid = 0 AND t.typtype IN ('b', 'p', 'r', 'm')
    AND NOT EXISTS (SELECT FROM pg_type e WHERE e.oid = t.typelem AND e.typrelid <> 0)
"""

ARGUMENT_TYPES = """
    (SELECT coalesce(string_agg(t.typname, ',' ORDER BY a.n), '')
       FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a(oid, n) JOIN pg_type t ON t.oid = a.oid)
"""

QUERIES = {
    "pg_type": f"""
        SELECT t.oid, t.typname, format_type(t.oid, NULL) AS sql_name, t.typlen, t.typtype,
               t.typcategory, t.typispreferred, t.typdelim, t.typbyval, t.typalign, t.typstorage,
               (SELECT typname FROM pg_type e WHERE e.oid = t.typelem) AS typelem,
               (SELECT typname FROM pg_type e WHERE e.oid = t.typarray) AS typarray,
               (SELECT collname FROM pg_collation c WHERE c.oid = t.typcollation) AS typcollation,
               t.typmodin <> 0 AS has_typmod,
               EXISTS (SELECT FROM pg_opclass o WHERE o.opcintype = t.oid AND o.opcdefault
                        AND o.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree')) AS has_btree,
               EXISTS (SELECT FROM pg_opclass o WHERE o.opcintype = t.oid AND o.opcdefault
                        AND o.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'hash')) AS has_hash
          FROM pg_type t WHERE {BUILTIN_TYPE} ORDER BY t.oid""",
    "pg_operator": """
        SELECT o.oid, o.oprname, l.typname AS oprleft, r.typname AS oprright, s.typname AS oprresult,
               p.proname AS oprcode, p.oid AS oprcode_oid, com.oprname AS oprcom, neg.oprname AS oprnegate,
               p.provolatile, p.proisstrict, o.oprcanmerge, o.oprcanhash
          FROM pg_operator o
          LEFT JOIN pg_type l ON l.oid = o.oprleft
          JOIN pg_type r ON r.oid = o.oprright
          JOIN pg_type s ON s.oid = o.oprresult
          JOIN pg_proc p ON p.oid = o.oprcode
          LEFT JOIN pg_operator com ON com.oid = o.oprcom
          LEFT JOIN pg_operator neg ON neg.oid = o.oprnegate
         WHERE o.oprnamespace = 'pg_catalog'::regnamespace ORDER BY o.oprname, o.oid""",
    "pg_proc": f"""
        SELECT p.oid, p.proname, {ARGUMENT_TYPES} AS proargtypes, r.typname AS prorettype, p.prokind,
               p.provolatile, p.proisstrict, p.proretset,
               (SELECT typname FROM pg_type v WHERE v.oid = p.provariadic) AS provariadic,
               p.pronargdefaults, p.prosrc,
               array_to_string(p.proargnames, ',') AS proargnames,
               array_to_string(p.proargmodes, ',') AS proargmodes,
               (SELECT string_agg(t.typname, ',' ORDER BY a.n) FROM unnest(p.proallargtypes)
                  WITH ORDINALITY a(oid, n) JOIN pg_type t ON t.oid = a.oid) AS proallargtypes,
               pg_get_expr(p.proargdefaults, 0) AS proargdefaults,
               p.procost, p.prorows, p.proparallel, p.proleakproof
          FROM pg_proc p JOIN pg_type r ON r.oid = p.prorettype
         WHERE p.pronamespace = 'pg_catalog'::regnamespace
           AND NOT EXISTS (SELECT FROM unnest(p.proargtypes::oid[]) a(oid) JOIN pg_type t ON t.oid = a.oid
                            WHERE t.typname IN ('internal', 'cstring'))
           AND r.typname NOT IN ('internal', 'cstring', 'trigger', 'event_trigger')
         ORDER BY p.proname, p.oid""",
    "pg_cast": """
        SELECT s.typname AS castsource, t.typname AS casttarget, p.proname AS castfunc,
               p.oid AS castfunc_oid, k.castcontext, k.castmethod, p.provolatile, p.pronargs
          FROM pg_cast k JOIN pg_type s ON s.oid = k.castsource JOIN pg_type t ON t.oid = k.casttarget
          LEFT JOIN pg_proc p ON p.oid = k.castfunc
         WHERE s.typnamespace = 'pg_catalog'::regnamespace AND t.typnamespace = 'pg_catalog'::regnamespace
         ORDER BY 1, 2""",
    "pg_type_description": """
        SELECT objoid, description FROM pg_description
         WHERE classoid = 'pg_type'::regclass AND objoid < 16384 ORDER BY objoid""",
    "pg_keywords": "SELECT word, catcode, barelabel FROM pg_get_keywords() ORDER BY word",
    "pg_collation": """
        SELECT oid, collname, collprovider, collencoding FROM pg_collation
         WHERE collnamespace = 'pg_catalog'::regnamespace AND collprovider IN ('d', 'b', 'c')
           AND collname IN ('default', 'C', 'POSIX', 'ucs_basic', 'pg_c_utf8', 'C.utf8')
         ORDER BY oid""",
    "pg_settings": """
        SELECT name, unit, vartype, context, boot_val, min_val, max_val, category, short_desc,
               extra_desc, array_to_string(enumvals, ',') AS enumvals
          FROM pg_settings WHERE name NOT LIKE '%.%' ORDER BY lower(name) COLLATE "C" """,
    "pg_system_column": """
        SELECT attname, attnum, typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
         WHERE attrelid = 'pg_class'::regclass AND attnum < 0 ORDER BY attnum DESC""",
    "pg_system_relation": """
        SELECT c.oid, c.relname, c.relkind, a.attnum, a.attname,
               CASE t.typname WHEN '_pg_statistic' THEN 'anyarray' ELSE t.typname END AS typname,
               a.attnotnull, format_type(a.atttypid, a.atttypmod) AS formatted, k.collname
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
          JOIN pg_type t ON t.oid = a.atttypid
          LEFT JOIN pg_collation k ON k.oid = a.attcollation AND k.oid <> t.typcollation
         WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v')
         ORDER BY c.relname, a.attnum""",
    "pg_system_index": """
        SELECT i.indrelid, c.relname, i.indisprimary, i.indisunique, x.contype IS NOT NULL AS is_constraint,
               regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING ', '') AS definition
          FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
          LEFT JOIN pg_constraint x ON x.conindid = i.indexrelid AND x.contype IN ('p', 'u')
         WHERE c.relnamespace = 'pg_catalog'::regnamespace
         ORDER BY i.indrelid, i.indisprimary DESC, c.relname""",
    # Functions and relations that only superusers, and members of some predefined roles, may use
    "restricted": r"""
        SELECT 'function' AS kind, p.oid, p.proname AS name, '' AS readable,
               (SELECT coalesce(string_agg(r.rolname, ',' ORDER BY r.oid), '')
                  FROM aclexplode(p.proacl) a JOIN pg_roles r ON r.oid = a.grantee
                 WHERE r.rolname LIKE 'pg_%') AS roles, '' AS calls
          FROM pg_proc p
         WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proacl IS NOT NULL
           AND NOT EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = 0)
         UNION ALL
        SELECT 'relation', c.oid, c.relname,
               (SELECT coalesce(string_agg(a.attname, ',' ORDER BY a.attnum), '')
                  FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attacl IS NOT NULL),
               (SELECT coalesce(string_agg(r.rolname, ',' ORDER BY r.oid), '')
                  FROM aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
                 WHERE r.rolname LIKE 'pg_%' AND a.privilege_type = 'SELECT'),
               (SELECT coalesce(string_agg(p.oid::text, ',' ORDER BY p.oid), '')
                  FROM pg_proc p
                 WHERE c.relkind = 'v' AND p.pronamespace = 'pg_catalog'::regnamespace
                   AND pg_get_viewdef(c.oid) ~ ('\m' || p.proname || '\(')
                   AND p.proacl IS NOT NULL
                   AND NOT EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = 0))
          FROM pg_class c
         WHERE c.relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
           AND c.relkind IN ('r', 'v')
           AND NOT EXISTS (SELECT FROM aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
                            WHERE a.grantee = 0 AND a.privilege_type = 'SELECT')
         ORDER BY kind, name, oid""",
    "information_schema": """
        SELECT c.oid, c.relname, c.relkind, a.attnum, a.attname,
               coalesce(b.typname, t.typname) AS typname, a.attnotnull,
               format_type(a.atttypid, a.atttypmod) AS formatted, k.collname
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
          JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
          LEFT JOIN pg_collation k ON k.oid = a.attcollation AND k.oid <> t.typcollation
         WHERE c.relnamespace = 'information_schema'::regnamespace AND c.relkind IN ('r', 'v')
         ORDER BY c.relname, a.attnum""",
}


def main(conninfo: str) -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    for name, query in QUERIES.items():
        copy = f"COPY ({query}) TO STDOUT (FORMAT text, HEADER, NULL '')"
        command = ["psql", conninfo, "-X", "-v", "ON_ERROR_STOP=1", "-c", copy]
        text = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
        (DATA / f"{name}.tsv").write_text(text, encoding="utf-8")
        print(f"{name}.tsv: {text.count(chr(10)) - 1} rows")


if __name__ == "__main__":
    main(sys.argv[1])
