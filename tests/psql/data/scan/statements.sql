SELECT 1;
   SELECT 2;   SELECT 3; SELECT
4
;
;
SELECT 5 \; SELECT 6;
SELECT (1
; 2);
SELECT ((1;)) ; SELECT ) 7;
SELECT 8


, 9;
	
SELECT 'at the end without a semicolon'
