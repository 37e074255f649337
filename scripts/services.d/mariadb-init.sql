-- Runs at each start, before the first client is let in. Tests may make databases of their own, named raingauge…
CREATE DATABASE IF NOT EXISTS raingauge CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS 'raingauge'@'127.0.0.1' IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON `raingauge%`.* TO 'raingauge'@'127.0.0.1';
