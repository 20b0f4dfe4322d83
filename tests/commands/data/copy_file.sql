create temporary table copied (a int);
copy (select 1) to '/tmp';
copy (select 1) to '/etc/passwd/x';
copy (select 1) to '/nowhere/x';
copy (select repeat('x', 100000)) to '/dev/full';
copy copied from '/tmp';
copy copied from '/etc/passwd/x';
copy copied from '/nowhere/x';
