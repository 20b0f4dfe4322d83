"""The syntax tree, one namespace of its nodes: what a statement says, before any name in it is
looked up.

Nodes are PostgreSQL's (parsenodes.h), frozen, and carry `pos`: the 0-based offset in the statement
that an error about them points at, as chosen by PostgreSQL's grammar (gram.y).
"""

from __future__ import annotations

from typing import TypeAlias

from replctl.parser.ast.expression import *
from replctl.parser.ast.query import *
from replctl.parser.ast.replication import *
from replctl.parser.ast.syntax_node import *
from replctl.parser.ast.table import *
from replctl.parser.ast.utility import *

#: What is neither a query nor a change of rows.
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
    | CreateDomain
    | CreateEnum
    | RenameEnumValue
    | CreateFunction
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
