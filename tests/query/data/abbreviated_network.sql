select abbrev('1:2:3::/48'::cidr), abbrev('0:0:1::/48'::cidr), abbrev('::ffff:1.2.3.0/120'::cidr), abbrev('::ffff:0:0/96'::cidr), abbrev('1:0:0:0:5::/80'::cidr);
select abbrev('::1.2.3.0/120'::cidr), abbrev('::1.2.0.0/112'::cidr), abbrev('::ffff:1.0.0.0/104'::cidr), abbrev('::1.2.3.4/128'::cidr), abbrev('::1/128'::cidr), abbrev('::/0'::cidr), abbrev('::/1'::cidr), abbrev('::/128'::cidr);
select abbrev('8000::/1'::cidr), abbrev('1::/16'::cidr), abbrev('1:2::/17'::cidr) as wrong;
select abbrev('1:0:0:1:0:0:0:1/128'::cidr), abbrev('1:0:0:1:0:0:1:1/128'::cidr), abbrev('0:1:0:1:0:1:0:1/128'::cidr), abbrev('0:0:0:0:0:0:0:200/120'::cidr), abbrev('::fffe:1.2.3.4/128'::cidr);
select abbrev('10.1.0.0/16'::cidr), abbrev('1:2:3::4/48'::inet);
