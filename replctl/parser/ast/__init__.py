"""The syntax tree: all its nodes, in one namespace, with names that are not looked up yet.

Nodes are those of PostgreSQL (parsenodes.h), and frozen.  Their `pos` is the 0-based offset in the
statement at which errors about them point, as chosen by PostgreSQL's grammar (gram.y).
"""

from __future__ import annotations

from typing import TypeAlias

from replctl.parser.ast.expression import *
from replctl.parser.ast.query import *
from replctl.parser.ast.replication import *
from replctl.parser.ast.syntax_node import *
from replctl.parser.ast.table import *
from replctl.parser.ast.utility import *

#: Statements that neither return nor change rows.
UtilityStatement: TypeAlias = (
    CreatePublication
    | AlterPublication
    | CreateSubscription
    | AlterSubscription
    | DropSubscription
    | CreateTable
    | CreateTableAs
    | AlterTable
    | CreateIndex
    | AttachIndex
    | CreateSequence
    | AlterSequence
    | CreateSchema
    | CreateDatabase
    | DropDatabase
    | AddEnumValue
    | AlterDomain
    | CreateComposite
    | CreateDomain
    | CreateEnum
    | RenameEnumValue
    | CreateFunction
    | AlterFunction
    | CreateOperator
    | CreateCollation
    | CreateView
    | RefreshMaterializedView
    | Comment
    | CreateRole
    | AlterRole
    | DropRole
    | CreatePolicy
    | AlterPolicy
    | GrantRole
    | Grant
    | AlterDefaultPrivileges
    | DropOwned
    | ReassignOwned
    | AlterRoleSet
    | AlterDatabaseSet
    | Drop
    | Rename
    | AlterOwner
    | AlterObjectSchema
    | TransactionStmt
    | VariableSet
    | AlterSystem
    | Checkpoint
    | Discard
    | Vacuum
)
Statement: TypeAlias = (
    SelectStmt
    | Insert
    | Update
    | Delete
    | Truncate
    | Copy
    | VariableShow
    | Explain
    | UtilityStatement
)
