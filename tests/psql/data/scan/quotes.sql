SELECT 'a;b', "c;d", 'it''s ;', "e""f;";
SELECT 'two
lines;

with an empty one', 'backslash\';
SELECT E'it\'s; \\', e'x''y\'z;';
SELECT E'at the end of a line \
'; SELECT E'a'
'b\';
SELECT U&'d\0061;', U&"d\0061;", u&';', N'n;', n';', x'0;', B'1;', b';';
SELECT 1 AS xe'\';
SELECT $$a;b$$, $t$ ; $$ ; $u$ ; $t$, a$b;$c;
SELECT $t$two
lines ; $ $t $T$ $tt$ $$t$, $1, $1;
SELECT $é$;$é$, $1a$;$1a$, $ $;
SELECT 1.5e3, .5, 1..2, 1e;
