create domain d as int constraint zzz check (value > 0) constraint aaa check (value < 9);
alter domain d add constraint mmm check (value <> 5);
create domain e as text check (value <> 'b') constraint a check (value <> 'a');
\dD
alter domain d add constraint abc check (value <> 6);
\dD d
\dD+ e
